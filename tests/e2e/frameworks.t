#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The examples of examples/frameworks on hekla up, with this machine as the node: what they print is
# what their first lines promise.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
needs_mounts
examples=examples/frameworks
verb=up

# has COMMAND...: whether it succeeds as a container's command would, which gets a path of its own.
has() {
    env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" >/dev/null 2>&1
}

# skip NAME REASON: a point that cannot be tried here.
skip() {
    count=$((count + 1))
    echo "ok $count - $1 # skip $2: install it with 'make deps-examples'"
}

# phase JOB PHASE
phase() {
    [ "$(kubectl get job.batch.volcano.sh "$1" -o 'jsonpath={.status.state.phase}')" = "$2" ]
}

# runs NAME SECONDS: the example is made, and its job of that name completes in time.
runs() {
    kubectl apply -f "$examples/$1.yaml" && within "$2" phase "$1" Completed && return 0
    kubectl get pods -o wide
    kubectl get events
    for pod in $(kubectl get pods -l "volcano.sh/job-name=$1" -o name | head -n 5); do
        echo "== $pod"
        kubectl logs "$pod"
    done
    return 1
}

# phases JOB COUNT: so many pods of the job are left, and they have succeeded.
phases() {
    kubectl get pods -l "volcano.sh/job-name=$1" -o 'jsonpath={range .items[*]}{.status.phase}{"\n"}{end}' |
        sort | uniq -c | tr -s " " >"$dir/out" && prints " $2 Succeeded"
}

# logs POD...: what they printed, pod by pod, in $dir/out.
logs() {
    for pod; do
        kubectl logs "$pod" || exit 1
    done >"$dir/all" && mv "$dir/all" "$dir/out"
}

# succeeded POD
succeeded() {
    [ "$(kubectl get pod "$1" -o 'jsonpath={.status.phase}')" = Succeeded ]
}

# idle: no pod has anything left on the node.
idle() {
    [ -z "$(ls "$data/node/pods")" ] && [ -z "$(ls "$data/node/run")" ]
}

# ask NAME KUBECTL: a pod that runs as the account of its name. kubectl in it has no configuration but
# what every pod finds.
ask() {
    kubectl create -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  schedulerName: volcano
  serviceAccountName: $1
  restartPolicy: Never
  volumes: [{name: home, emptyDir: {}}]
  containers:
  - name: main
    image: none
    env: [{name: HOME, value: /mnt/home}]
    volumeMounts: [{name: home, mountPath: /mnt/home}]
    command:
    - sh
    - -c
    - |
      $2 auth whoami && $2 get pod $1 -o name && ! $2 get persistentvolumes 2>&1 &&
          echo "token \$(cat /var/run/secrets/kubernetes.io/serviceaccount/token)"
YAML
}

# refuses TOKEN: nobody has it any more.
refuses() {
    ! kubectl --kubeconfig=/dev/null --server="$url" --certificate-authority="$data/ca.crt" \
        --token="$1" auth whoami >"$dir/out" 2>&1 && grep -q Unauthorized "$dir/out"
}

start

# ---- Open MPI ----

mpi='Open MPI: ranks on workers of their own, reached by ssh, compute pi'
if ! has mpirun --version || ! has mpicc --version || ! has test -x /usr/sbin/sshd; then
    skip "$mpi" 'no Open MPI, or no sshd'
elif [ "$(id -u)" -ne 0 ]; then
    count=$((count + 1))
    echo "ok $count - $mpi # skip the keys are in /root/.ssh, and we are not root"
else
    step "$mpi" '
        runs openmpi 60 && phases openmpi 1 && logs openmpi-launcher-0 &&
            says "rank 0 of 3 on openmpi-worker-0" "rank 1 of 3 on openmpi-worker-1" \
                "rank 2 of 3 on openmpi-worker-2" &&
            awk "/^pi = / { off = \$3 - 3.14159265358979; exit }
                END { exit off == \"\" || off > 1e-6 || off < -1e-6 }" "$dir/out"
    '
fi

# ---- PyTorch ----

torch='PyTorch: gradients averaged over gloo, the same falling loss on every rank'
if ! has python3 -c 'import torch.distributed'; then
    skip "$torch" 'no PyTorch'
else
    step "$torch" '
        runs pytorch 120 && phases pytorch 3 && logs pytorch-master-0 pytorch-worker-0 pytorch-worker-1 &&
            says "rank 0 of 3" "rank 1 of 3" "rank 2 of 3" || exit 1
        cat "$dir/out"
        sed "s/^rank . of 3 //" "$dir/out" | sort | uniq -c | awk "\$1 != 3 { exit 1 }" || exit 1
        grep "^rank 0 .*loss" "$dir/out" |
            awk "NR > 1 && \$NF >= last { bad = 1 } { last = \$NF } END { exit bad || NR != 5 }"
    '
fi

# ---- what needs nothing but Python ----

tf='TensorFlow: every task of TF_CONFIG is reached from every other'
spark='a driver makes a gang of executors with the token of its account'
ray='Ray: workers join the head at the address they are given'
if ! has python3 --version; then
    skip "$tf" 'no Python'
    skip "$spark" 'no Python'
    skip "$ray" 'no Python'
else
    step "$tf" '
        all="chief/0 ps/0 worker/0 worker/1"
        runs tensorflow 60 && phases tensorflow 4 &&
            logs tensorflow-chief-0 tensorflow-ps-0 tensorflow-worker-0 tensorflow-worker-1 &&
            prints "$(for task in $all; do echo "$task reaches $all"; done)"
    '
    step "$spark" '
        kubectl apply -f "$examples/spark.yaml" && within 60 succeeded spark-driver &&
            k logs spark-driver && says "podgroup spark-executors: minMember 3, Running" \
                "spark-executor-0 at 127." "spark-executor-1 at 127." "spark-executor-2 at 127." \
                "primes below 65536: 6542" || { kubectl logs spark-driver; exit 1; }
        k get events && says "pod/spark-executor-2 Successfully assigned" && gone podgroup/spark-executors
    '
    step "$ray" '
        runs ray 60 && succeeded ray-head-0 && logs ray-head-0 && says "2 workers have joined"
    '
fi
# ---- what needs nothing ----

step 'kubectl in a pod is the service account of the pod, with its rights and no others' '
    kubectl create serviceaccount inside && kubectl create role inside --verb=get --resource=pods &&
        kubectl create rolebinding inside --role=inside --serviceaccount=default:inside &&
        ask inside "$(command -v kubectl)" && within 30 succeeded inside && k logs inside &&
        says "Username system:serviceaccount:default:inside" pod/inside \
            "User \"system:serviceaccount:default:inside\" cannot list resource \"persistentvolumes\""
'
step 'the token ends with its pod' '
    bearer=$(kubectl logs inside | sed -n "s/^token //p") && [ -n "$bearer" ] || exit 1
    refuses "$bearer" && { echo "refused while its pod is there"; exit 1; }
    kubectl delete pod inside && within 30 refuses "$bearer"
'
step 'an array of 500 tasks: each runs once, and all output is kept' '
    runs array 120 && phases array 500 || exit 1
    curl -sSf --cacert "$data/ca.crt" -H "Authorization: Bearer $token" \
        "$url/api/v1/namespaces/default/pods/array-square-[0-499]/log" >"$dir/all" || exit 1
    awk "{ n += \$1 } END { print NR, n }" "$dir/all" >"$dir/out" && prints "500 41541750"
'
step 'when all is deleted the node is as it was' '
    for example in "$examples"/*.yaml; do
        kubectl delete --ignore-not-found --wait=false -f "$example" || exit 1
    done
    kubectl delete pod --all --wait=false
    within 60 idle
'
stop TERM
step 'the server ends cleanly' '
    [ "$status" = 0 ] && [ ! -s "$dir/server" ] || { echo "exit status $status"; cat "$dir/server"; exit 1; }
'
finish
