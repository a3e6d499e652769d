#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# DNS of hekla up: the names of Services and pods, other names by way of the machine's resolvers, and
# the resolv.conf of pods. The resolver of the machine is a program of the test, which only the server
# sees. HEKLA names the program; needs root for port 53, kubectl, python3, dig and nslookup.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl python3 dig nslookup unshare setpriv
needs_embedded 'a real control plane has no DNS server of ours'
needs_root
needs_mounts
# A network that no other test uses.
net=127.$((129 + $$ % 100)).$(($$ / 100 % 250))
dns=$net.10 resolver_address=$net.200
verb=up options="--service-cluster-ip-range $net.0/24"
program=$HEKLA resolver=

end_others() {
    [ -z "$resolver" ] || kill "$resolver" 2>/dev/null
}

# write_wrapper: a program that runs hekla with a resolv.conf of its own.
write_wrapper() {
    printf 'nameserver %s\nsearch corp.example\n' "$resolver_address" >"$dir/resolv.conf"
    cat >"$dir/hekla" <<WRAPPER
#!/bin/sh
exec unshare -m sh -c 'mount --bind "$dir/resolv.conf" /etc/resolv.conf && exec "\$@"' sh \
    \${LIMIT:-} "$program" "\$@"
WRAPPER
    chmod +x "$dir/hekla"
    HEKLA=$dir/hekla
}

start_resolver() {
    python3 tests/e2e/dns_server.py "$resolver_address" "$dir/asked" >"$dir/resolver" 2>&1 &
    resolver=$!
    within 10 grep -q ready "$dir/resolver"
}

# digs NAME ARG...: what the server answers; the output goes to $dir/out.
digs() {
    dig "@$dns" +tries=1 +time=15 "$@" >"$dir/out" 2>&1 && return 0
    cat "$dir/out"
    return 1
}

# finds ANSWER NAME ARG...: the short answer is exactly that, in any order.
finds() {
    want=$1
    shift
    digs +short "$@" && sort -o "$dir/out" "$dir/out" && prints "$want"
}

# finds_many COUNT NAME ARG...: so many answers.
finds_many() {
    want=$1
    shift
    digs +short "$@" && [ "$(wc -l <"$dir/out")" -eq "$want" ] && return 0
    echo "expected $want answers:"
    cat "$dir/out"
    return 1
}

# in_pod COMMAND...: runs it in the pod "client".
in_pod() {
    k exec client -- "$@"
}

# looks_up NAME: the addresses that Python finds in the pod "client".
looks_up() {
    in_pod python3 -c "
import socket
print(*sorted({a[4][0] for a in socket.getaddrinfo('$1', 80, socket.AF_INET)}))"
}

# make_pod NAME SPEC: starts a pod that sleeps, and waits for it.
make_pod() {
    k run "$1" --image=x --overrides="{\"spec\":{\"terminationGracePeriodSeconds\":0,$2}}" \
        --command -- sleep 1000 && k wait --for=condition=Ready "pod/$1" --timeout=30s
}

# sees NAME LINES: the pod's resolv.conf is exactly that.
sees() {
    k exec "$1" -- cat /etc/resolv.conf && prints "$(printf '%b' "$2")"
}

# certified NAME...: the server's certificate is valid for the names, which lead to it in the pod "other".
certified() {
    for name; do
        k exec other -- getent hosts "$name" && says "$net.1" && python3 -c "
import socket, ssl
context = ssl.create_default_context(cafile='$data/ca.crt')
with socket.create_connection(('127.0.0.1', $(echo "$url" | sed 's/.*://'))) as s:
    context.wrap_socket(s, server_hostname='$name').close()" || return 1
    done
}

# has_service: the Service of the DNS server has its address.
has_service() {
    k get -n kube-system service kube-dns -o "jsonpath={.spec.clusterIP}" && prints "$dns"
}

ip_of() {
    kubectl get pod "$1" -o 'jsonpath={.status.podIP}'
}

write_objects() {
    cat >"$dir/objects.yaml" <<'YAML'
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{name: sql, port: 5432}]}
---
apiVersion: v1
kind: Service
metadata: {name: elsewhere}
spec: {type: ExternalName, externalName: www.example}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: db, image: x, command: [sleep, "1000"]}]
YAML
}

write_long() {
    cat >"$dir/long.yaml" <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: x, command: [sleep, "1000"]}]
YAML
}

# write_many: a headless Service with 100 endpoints.
write_many() {
    python3 - >"$dir/many.yaml" <<'PYTHON'
import json
service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "many"},
           "spec": {"clusterIP": "None", "ports": [{"name": "p", "port": 1}]}}
endpoints = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
             "metadata": {"name": "many-1", "labels": {"kubernetes.io/service-name": "many"}},
             "ports": [{"name": "p", "port": 1, "protocol": "TCP"}],
             "endpoints": [{"addresses": [f"192.0.2.{i + 1}"]} for i in range(100)]}
print(json.dumps({"apiVersion": "v1", "kind": "List", "items": [service, endpoints]}))
PYTHON
}

# write_attack: sends what no client should, over UDP and TCP.
write_attack() {
    cat >"$dir/attack.py" <<'PYTHON'
import random, socket, struct, sys
at, random = (sys.argv[1], 53), random.Random(4711)
query = b"\0\7\1\0\0\1\0\0\0\0\0\0\3web\7default\3svc\7cluster\5local\0\0\1\0\1"
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.setblocking(False)
for n in range(3000):
    message = bytearray(query)
    for _ in range(n % 8):
        message[random.randrange(len(message))] = random.randrange(256)
    udp.sendto(bytes(message[: random.randrange(len(message) + 1)] if n % 3 == 0 else message), at)
    try:
        while True:
            udp.recv(65535)
    except BlockingIOError:
        pass
udp.sendto(random.randbytes(60000), at)
udp.sendto(query[:12] + b"\1a\xc0\x0c\0\1\0\1", at)  # a name that leads to itself
open_connections = []
for n in range(400):
    s = socket.create_connection(at)
    s.setblocking(False)
    try:
        s.send([b"", b"\0", b"\xff\xff" + random.randbytes(900), struct.pack(">H", len(query)) + query,
                (struct.pack(">H", len(query)) + query) * 50, random.randbytes(50)][n % 6])
    except OSError:
        pass
    open_connections.append(s)  # nobody reads the replies
s = socket.create_connection(at, 10)
s.sendall(struct.pack(">H", len(query)) + query)
assert len(s.recv(4096)) > 40
PYTHON
}

write_wrapper
write_objects
write_long
write_many
write_attack
start_resolver
start

step 'the DNS server has a Service, which comes back when somebody deletes it' '
    within 10 has_service && k delete -n kube-system service kube-dns && within 10 has_service
'
step 'a pod is told the server, the domains of the cluster, and those of the machine' '
    k apply -f "$dir/objects.yaml" && make_pod client "\"subdomain\":\"db\"" &&
        sees client "search default.svc.cluster.local svc.cluster.local cluster.local corp.example
nameserver $dns
options ndots:5"
'
step 'nslookup in a pod finds a Service by its short and its long names' '
    web=$(kubectl get service web -o "jsonpath={.spec.clusterIP}") &&
        for name in web web.default web.default.svc web.default.svc.cluster.local; do
            in_pod nslookup "$name" && says "Server: $dns" "Name: web.default.svc.cluster.local" \
                "Address: $web" || exit 1
        done
'
step 'from outside the pods the same names are found, in any case of letters' '
    web=$(kubectl get service web -o "jsonpath={.spec.clusterIP}") &&
        finds "$web" web.default.svc.cluster.local && digs WEB.Default.svc.CLUSTER.local &&
        says "WEB.Default.svc.CLUSTER.local. 5 IN A"
'
step 'a named port has an SRV record, which names the target and its address' '
    digs _http._tcp.web.default.svc.cluster.local SRV &&
        says "IN SRV 0 100 8080 web.default.svc.cluster.local." "web.default.svc.cluster.local. 5 IN A"
'
step 'a headless Service has the addresses of its pods, each of which has a name' '
    k rollout status statefulset/db --timeout=60s && one=$(ip_of db-0) && two=$(ip_of db-1) &&
        within 20 finds_many 2 db.default.svc.cluster.local &&
        finds "$one" db-0.db.default.svc.cluster.local &&
        finds "$two" db-1.db.default.svc.cluster.local &&
        finds "0 50 5432 db-0.db.default.svc.cluster.local.
0 50 5432 db-1.db.default.svc.cluster.local." _sql._tcp.db.default.svc.cluster.local SRV
'
step 'addresses of Services, endpoints and pods lead back to names' '
    client=$(ip_of client) && dashed=$(echo "$client" | tr . -) &&
        finds "kube-dns.kube-system.svc.cluster.local." -x "$dns" &&
        finds "db-1.db.default.svc.cluster.local." -x "$(ip_of db-1)" &&
        finds "$dashed.default.pod.cluster.local." -x "$client"
'
step 'a pod has a name made of its address' '
    client=$(ip_of client) && dashed=$(echo "$client" | tr . -) &&
        looks_up "$dashed.default.pod.cluster.local" && prints "$client"
'
step 'names follow the pods that come and go' '
    k scale statefulset db --replicas=3 &&
        within 30 finds_many 3 db.default.svc.cluster.local &&
        within 30 finds_many 1 db-2.db.default.svc.cluster.local &&
        k scale statefulset db --replicas=1 &&
        within 30 finds_many 1 db.default.svc.cluster.local &&
        digs db-2.db.default.svc.cluster.local && says "status: NXDOMAIN"
'
step 'a Service is found as soon as it is made, and not when it is deleted' '
    k create service clusterip brief --tcp=80 &&
        within 10 finds_many 1 brief.default.svc.cluster.local && k delete service brief &&
        within 10 finds_many 0 brief.default.svc.cluster.local
'
step 'what does not exist is denied with a record that says for how long' '
    digs nosuch.default.svc.cluster.local && says "status: NXDOMAIN" "flags: qr aa" \
        "cluster.local. 5 IN SOA" &&
        digs web.default.svc.cluster.local AAAA && says "status: NOERROR" "ANSWER: 0" "IN SOA"
'
step 'other names are answered by the resolver of the machine' '
    looks_up www.example && prints 192.0.2.7 && digs nosuch.example && says "status: NXDOMAIN" &&
        looks_up intranet && prints 192.0.2.7 && grep -q "intranet.corp.example" "$dir/asked"
'
step 'its questions have ids and ports that nobody can guess, and lies are not believed' '
    for i in 1 2 3 4 5 6; do digs "n$i.example" || exit 1; done &&
        [ "$(grep " n[1-6]\.example" "$dir/asked" | cut -d" " -f2 | sort -u | wc -l)" -ge 5 ] &&
        [ "$(grep " n[1-6]\.example" "$dir/asked" | cut -d" " -f3 | sort -u | wc -l)" -ge 5 ] &&
        finds 192.0.2.7 liar.example
'
step 'a Service may stand for a name outside of the cluster' '
    finds "192.0.2.7
www.example." elsewhere.default.svc.cluster.local && looks_up elsewhere && prints 192.0.2.7
'
step 'an answer that is too long for UDP says so, and is complete over TCP' '
    k apply -f "$dir/many.yaml" &&
        within 10 finds_many 100 many.default.svc.cluster.local +tcp &&
        digs many.default.svc.cluster.local +noedns +ignore && says "flags: qr aa tc" &&
        finds_many 100 many.default.svc.cluster.local +noedns &&
        finds_many 100 many.default.svc.cluster.local +bufsize=4096 +ignore
'
step 'so is one of the resolver of the machine' '
    digs big.example +ignore && says "flags: qr tc" && finds_many 100 big.example &&
        grep -q "^tcp .* big.example" "$dir/asked"
'
step 'a resolver that stays silent holds nobody else up, and ends in an error' '
    { digs silent.example || true; cp "$dir/out" "$dir/silence"; } &
    slow=$!
    within 10 grep -q silent.example "$dir/asked" && dig "@$dns" +short web.default.svc.cluster.local &&
        wait $slow && grep -q "status: SERVFAIL" "$dir/silence"
'
step 'hostile messages and idle connections do not stop the server' '
    python3 "$dir/attack.py" "$dns" && finds_many 1 web.default.svc.cluster.local &&
        finds_many 1 web.default.svc.cluster.local +tcp && kill -0 "$pid"
'
step 'dnsPolicy Default gives the file of the machine, and so does the network of the host' '
    make_pod plain "\"dnsPolicy\":\"Default\"" && sees plain "$(cat "$dir/resolv.conf")" &&
        make_pod host "\"hostNetwork\":true" && sees host "$(cat "$dir/resolv.conf")"
'
step 'ClusterFirstWithHostNet names the server on the network of the host as well' '
    make_pod hostdns "\"hostNetwork\":true,\"dnsPolicy\":\"ClusterFirstWithHostNet\"" &&
        k exec hostdns -- cat /etc/resolv.conf && says "nameserver $dns"
'
step 'dnsPolicy None has what the pod says, and nothing else' '
    make_pod none "\"dnsPolicy\":\"None\",\"dnsConfig\":{\"nameservers\":[\"192.0.2.1\"],\"searches\":[\"x.example\"],\"options\":[{\"name\":\"edns0\"}]}" &&
        sees none "search x.example\nnameserver 192.0.2.1\noptions edns0"
'
step 'a dnsConfig is merged: its options win, its servers and domains come last' '
    make_pod merged "\"dnsConfig\":{\"nameservers\":[\"192.0.2.1\",\"$dns\"],\"searches\":[\"x.example\",\"cluster.local\"],\"options\":[{\"name\":\"ndots\",\"value\":\"2\"},{\"name\":\"rotate\"}]}" &&
        sees merged "search default.svc.cluster.local svc.cluster.local cluster.local corp.example x.example
nameserver $dns\nnameserver 192.0.2.1\noptions ndots:2 rotate"
'
step 'more than three name servers are too many, and an event says so' '
    make_pod greedy "\"dnsConfig\":{\"nameservers\":[\"192.0.2.1\",\"192.0.2.2\",\"192.0.2.3\"]}" &&
        k exec greedy -- grep -c nameserver /etc/resolv.conf && prints 3 &&
        within 10 k get events --field-selector reason=DNSConfigForming,involvedObject.name=greedy &&
        within 10 k describe pod greedy && says "Nameserver limits were exceeded, some nameservers \
have been omitted, the applied nameserver line is: $dns 192.0.2.1 192.0.2.2"
'
step 'a pod may carry its whole name' '
    make_pod full "\"hostname\":\"h\",\"subdomain\":\"db\",\"setHostnameAsFQDN\":true" &&
        k exec full -- hostname && prints h.db.default.svc.cluster.local &&
        k exec full -- sh -c "echo \$HOSTNAME" && prints h.db.default.svc.cluster.local &&
        k exec full -- hostname -f && prints h.db.default.svc.cluster.local
'
step 'a whole name that is too long for the kernel is refused with the reason' '
    long=$(printf "h%.0s" $(seq 50)) &&
        k run toolong --image=x --overrides="{\"spec\":{\"hostname\":\"$long\",\"subdomain\":\"db\",\"setHostnameAsFQDN\":true}}" \
            --command -- sleep 1000 && within 20 field pod/toolong \
            ".status.containerStatuses[0].state.waiting.message" \
            "failed to construct FQDN from pod hostname and cluster domain, FQDN \
$long.db.default.svc.cluster.local is too long (64 characters is the max, 79 characters requested)"
'
step 'a pod with a long name has the first 63 characters of it as its hostname' '
    name=$(printf "n%.0s" $(seq 62))-tail && sed "s/NAME/$name/" "$dir/long.yaml" | k apply -f - &&
        k wait --for=condition=Ready "pod/$name" --timeout=30s &&
        k exec "$name" -- hostname && prints "$(printf "n%.0s" $(seq 62))"
'
stop TERM
start
step 'after a restart pods that kept running find the same server' '
    within 20 in_pod nslookup web && says "Server: $dns"
'
stop TERM
content
options="$options --cluster-domain example.test"
start
step 'the cluster may have another domain' '
    within 20 finds_many 1 web.default.svc.example.test && make_pod other "\"hostname\":\"o\",\"subdomain\":\"db\"" &&
        k exec other -- cat /etc/resolv.conf &&
        says "search default.svc.example.test svc.example.test example.test corp.example" &&
        certified kubernetes.default.svc.example.test kubernetes.default.svc kubernetes.default &&
        k exec other -- cat /etc/hosts && says "o.db.default.svc.example.test" "web.default.svc.example.test" &&
        silent cluster.local
'
stop TERM
options="$options --cluster-dns off"
start
step 'without the server pods see the file of the machine' '
    make_pod off "\"restartPolicy\":\"Never\"" && sees off "$(cat "$dir/resolv.conf")" &&
        ! digs web.default.svc.example.test +time=1
'
stop TERM
options="--service-cluster-ip-range $net.0/24 --cluster-dns $net.99"
start
step 'it may listen on another loopback address' '
    make_pod elsewhere "\"restartPolicy\":\"Never\"" && k exec elsewhere -- cat /etc/resolv.conf &&
        says "nameserver $net.99"
'
stop TERM
options="--service-cluster-ip-range $net.0/24"
LIMIT='setpriv --bounding-set -net_bind_service --inh-caps -net_bind_service' export LIMIT
start
step 'where port 53 is not permitted, the log says so and the rest works' '
    within 10 grep -qF "there is no DNS server: pods find Services through their hosts files only" "$dir/server" &&
        make_pod bare "\"restartPolicy\":\"Never\"" && sees bare "$(cat "$dir/resolv.conf")" &&
        k exec bare -- getent hosts web.default.svc && says web
'
stop USR1
unset LIMIT
step 'addresses and domains that cannot be are refused' '
    stumbles up "option --cluster-dns is '\''192.0.2.1'\'', want auto, off or a loopback address" \
        --data-dir "$dir/x" --cluster-dns 192.0.2.1 &&
        stumbles up "option --cluster-domain is '\''-x'\'', want a domain such as cluster.local" \
            --data-dir "$dir/x" --cluster-domain -x
'
finish
