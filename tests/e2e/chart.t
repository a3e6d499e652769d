#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The Helm chart: with its own values it renders what hekla manifests prints, with values of
# Volcano's chart what they ask for, and it can be installed, changed and taken away.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
helm=$(scripts/helm 2>/dev/null) || skip_all 'no helm, and none could be built'
chart=$dir/hekla.tgz
export HELM_CACHE_HOME="$dir/helm" HELM_CONFIG_HOME="$dir/helm" HELM_DATA_HOME="$dir/helm"

# render ARG...: the chart, in $dir/out.
render() {
    "$helm" template volcano "$chart" --kube-version 1.34.0 -n volcano-system "$@" >"$dir/out"
}

# plainly FILE: the objects of the file in one order and one spelling.
plainly() {
    rm -rf "$dir/plain"
    mkdir "$dir/plain"
    grep -v '^#' "$1" >"$dir/plain/all.yaml"
    printf 'resources: [all.yaml]\nsortOptions: {order: legacy}\n' >"$dir/plain/kustomization.yaml"
    "$kubectl" kustomize "$dir/plain"
}

# same ARG...: the chart as rendered last has the objects that these manifests have.
same() {
    "$HEKLA" manifests --without namespace "$@" >"$dir/manifests" &&
        plainly "$dir/manifests" >"$dir/want" && plainly "$dir/out" >"$dir/got" &&
        diff "$dir/want" "$dir/got"
}

step 'the chart is packed from the manifests' '
    scripts/chart "$HEKLA" "$chart" && scripts/chart "$HEKLA" "$dir/again.tgz" &&
        cmp "$chart" "$dir/again.tgz"
'

step 'helm finds nothing wrong with it' '
    "$helm" lint --strict "$chart"
'

step 'with default values the chart renders what hekla manifests prints' '
    render --include-crds && same
'

step 'replicas and their budgets match hekla manifests' '
    render --set custom.scheduler_replicas=2,custom.controller_replicas=2,custom.admission_replicas=2
    same --replicas 2 --without namespace,crds
'

step 'another namespace and registry match hekla manifests' '
    render -n batch --set basic.image_registry=registry.example/x,basic.image_tag_version=9
    same --without namespace,crds --namespace batch --image registry.example/x/hekla:9
'

step 'a selection of webhooks matches hekla manifests' '
    render --set-string "custom.enabled_admissions=/jobs/mutate\,/jobs/validate"
    same --without namespace,crds --enabled-admission /jobs/mutate,/jobs/validate
'

step 'user configurations match hekla manifests' '
    echo "actions: allocate" >"$dir/sched.conf"
    echo "resourceGroups: [{resourceGroup: a}]" >"$dir/adm.conf"
    render --set-file "custom.scheduler_config_override=$dir/sched.conf" \
        --set-file "custom.admission_config_override=$dir/adm.conf"
    same --without namespace,crds --scheduler-conf "$dir/sched.conf" --admission-conf "$dir/adm.conf"
'

cat >"$dir/values.yaml" <<'EOF'
basic:
  controller_image_name: volcanosh/vc-controller-manager
  image_pull_secret: pull
  admission_secret_name: from-cert-manager
  admission_port: 9443
custom:
  metrics_enable: false
  leader_elect_enable: false
  scheduler_metrics_enable: false
  controller_worker_threads: 3
  scheduler_schedule_period: 1s
  scheduler_name: mine
  scheduler_kube_api_qps: 7
  scheduler_log_level: 5
  scheduler_feature_gates: PriorityClass=true
  common_labels: {team: batch}
  scheduler_podLabels: {part: brain}
  default_ns: {nodetype: critical}
  scheduler_ns: {nodetype: special}
  default_tolerations: [{key: k, operator: Exists}]
  controller_affinity: {nodeAffinity: {}}
  admission_resources: {limits: {cpu: 300m}}
  webhooks_namespace_selector_expressions: [{key: workload-type, operator: In, values: [batch]}]
service:
  ipFamilyPolicy: PreferDualStack
EOF
step 'values of Volcanos chart are accepted and have the same effect' '
    render -f "$dir/values.yaml"
    tr "\n" " " <"$dir/out" | tr -s " " >"$dir/line" && mv "$dir/line" "$dir/out"
    says "image: volcanosh/vc-controller-manager:" "imagePullSecrets: - name: pull" \
        "secretName: from-cert-manager" "- --ca-cert-file=/admission.local.config/certificates/ca.crt" \
        "- --port=9443" "targetPort: 9443" "- --leader-elect=false - --kube-api-qps=7" "- -v=5" \
        "- --scheduler-name=mine" "- --feature-gates=PriorityClass=true" "team: batch" "part: brain" \
        "nodeSelector: nodetype: special" "nodeSelector: nodetype: critical" \
        "tolerations: - key: k operator: Exists" "affinity: nodeAffinity: {}" \
        "resources: limits: cpu: 300m" "- key: workload-type operator: In values: - batch" \
        "schedulerName == '\''mine'\''" "ipFamilyPolicy: PreferDualStack" &&
        silent volcano-scheduler-service && silent "schedulerName == '\''volcano'\''" &&
        silent leader-elect-resource-namespace
'

step 'programs can be left out' '
    render --set custom.admission_enable=false,custom.controller_enable=false
    says volcano-scheduler && silent Webhook && silent volcano-controllers && silent volcano-admission
'

start

step 'helm installs the chart over an existing installation' '
    k create -f - <<EOF
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: stays}
spec: {minAvailable: 1, tasks: [{name: t, replicas: 1, template: {spec: {containers: [{name: c, image: i}]}}}]}
EOF
    "$HEKLA" manifests --only namespace,accounts,rbac >"$dir/manifests"
    k apply --server-side -f "$dir/manifests" &&
        "$helm" install volcano "$chart" -n volcano-system --create-namespace --take-ownership
    k get deployments -n volcano-system && says volcano-scheduler volcano-controllers volcano-admission
'

step 'the installed objects equal those of hekla manifests' '
    "$HEKLA" manifests --without namespace,crds >"$dir/manifests"
    k diff --server-side -f "$dir/manifests" --force-conflicts
'

step 'a release that owns the definitions is refused, because an upgrade would delete them' '
    k annotate crd queues.scheduling.volcano.sh meta.helm.sh/release-name=volcano \
        helm.sh/resource-policy-
    ! "$helm" upgrade volcano "$chart" -n volcano-system >"$dir/out" 2>&1
    says "queues.scheduling.volcano.sh belongs to this release and would be deleted"
'

step 'helm upgrades once the definitions are marked to stay' '
    "$HEKLA" manifests --only crds >"$dir/manifests"
    k apply --server-side --force-conflicts -f "$dir/manifests"
    "$helm" upgrade volcano "$chart" -n volcano-system --set custom.scheduler_replicas=2
    k get deployment/volcano-scheduler -n volcano-system -o jsonpath="{.spec.replicas}" && prints 2
'

step 'helm uninstalls the chart and deletes no job' '
    "$helm" uninstall volcano -n volcano-system
    k get vcjob stays && refused NotFound get deployment/volcano-scheduler -n volcano-system
'

stop TERM
content
echo "1..$count"
[ "$failed" -eq 0 ]
