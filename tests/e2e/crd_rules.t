#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Rules of custom resources (x-kubernetes-validations) as their authors meet them: definitions whose
# rules do not compile, objects that break rules, updates that rules compare with the object before.
# HEKLA names the program; without kubectl there is nothing to do.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl

# definition RULE: a definition of Shelves whose spec has the rule, in $dir/crd.yaml.
definition() {
    cat >"$dir/crd.yaml" <<END
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shelves.store.example.com}
spec:
  group: store.example.com
  scope: Namespaced
  names: {plural: shelves, singular: shelf, kind: Shelf}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - rule: "$1"
            - rule: "self.minBoxes <= self.boxes"
              messageExpression: "'want at least ' + string(self.minBoxes) + ' boxes'"
              fieldPath: .boxes
            - rule: "!has(self.network) || cidr(self.network).containsIP('10.1.2.3')"
              message: 10.1.2.3 must be in the network
              reason: FieldValueForbidden
            - rule: "!has(self.room) || quantity(self.room).isLessThan(quantity('1Ti'))"
            - rule: "!has(self.alias) || !format.dns1123Label().validate(self.alias).hasValue()"
              message: an alias is a name of DNS
            properties:
              boxes: {type: integer}
              minBoxes: {type: integer, default: 1}
              network: {type: string, maxLength: 50}
              room: {type: string, maxLength: 20}
              alias: {type: string, maxLength: 63}
              owner:
                type: string
                maxLength: 100
                x-kubernetes-validations:
                - {rule: self == oldSelf, message: owner is immutable}
              until:
                type: string
                format: date-time
                x-kubernetes-validations:
                - {rule: "self > timestamp('2000-01-01T00:00:00Z')"}
END
}

# shelf NAME SPEC: an object in $dir/shelf.yaml.
shelf() {
    printf 'apiVersion: store.example.com/v1\nkind: Shelf\nmetadata: {name: %s}\nspec: %s\n' "$1" \
        "$2" >"$dir/shelf.yaml"
}

# breaks SPEC TEXT...: the server refuses the object and says each text.
breaks() {
    shelf bad "$1"
    shift
    for text; do
        refused "$text" create -f "$dir/shelf.yaml" || return 1
    done
}

start

step 'a definition whose rule does not compile is refused, with the place' '
    definition "self.books > 1"
    for text in "properties[spec].x-kubernetes-validations[0].rule: Invalid value" \
        "compilation failed: ERROR: <input>:1:5: undefined field" "| ....^"; do
        refused "$text" create -f "$dir/crd.yaml" || exit 1
    done
'
step 'a definition whose rule is not a condition is refused' '
    definition "self.boxes"
    refused "must evaluate to a bool" create -f "$dir/crd.yaml"
'
step 'a good definition is accepted without a warning' '
    definition "self.boxes < 100"
    k create -f "$dir/crd.yaml" && ! grep -q Warning "$dir/err" &&
    k wait --for=condition=Established crd/shelves.store.example.com --timeout=20s
'
step 'an object that keeps the rules is created' '
    shelf a "{boxes: 5, owner: ann, network: 10.0.0.0/8, room: 20Gi, alias: top-shelf, until: 2030-01-01T00:00:00Z}"
    within 10 k create -f "$dir/shelf.yaml"
'
step 'an object that breaks a rule is refused with the rule' '
    breaks "{boxes: 100}" "failed rule: self.boxes < 100"
'
step 'a message may be an expression, and name a field' '
    breaks "{boxes: 1, minBoxes: 3}" "spec.boxes: Invalid value" "want at least 3 boxes"
'
step 'a rule may have a reason' '
    breaks "{boxes: 1, network: 192.168.0.0/16}" "spec: Forbidden: 10.1.2.3 must be in the network"
'
step 'rules use the libraries of Kubernetes' '
    breaks "{boxes: 1, room: 2Ti}" "failed rule: !has(self.room)" &&
    breaks "{boxes: 1, alias: A_b}" "an alias is a name of DNS" &&
    breaks "{boxes: 1, until: 1999-01-01T00:00:00Z}" "failed rule: self > timestamp"
'
step 'an error of a rule refuses the object, too' '
    breaks "{boxes: 1, network: nonsense}" "network address parse error" "evaluating rule: 10.1.2.3 must be in the network"
'
step 'rules are evaluated only when the types are right' '
    breaks "{boxes: many}" "spec.boxes in body must be of type integer" "some validation rules were not checked"
'
step 'a rule compares an update with the object before' '
    refused "owner is immutable" patch shelf a --type=merge -p "{\"spec\":{\"owner\":\"bob\"}}"
'
step 'a rule does not refuse a change of other fields' '
    k patch shelf a --type=merge -p "{\"spec\":{\"boxes\":6}}" && field shelf/a .spec.boxes 6
'
step 'a stricter rule does not refuse fields that stay as they were' '
    definition "self.boxes < 3" && k apply -f "$dir/crd.yaml" &&
    within 10 k label shelf a colour=red --overwrite &&
    refused "failed rule: self.boxes < 3" patch shelf a --type=merge -p "{\"spec\":{\"boxes\":7}}"
'
stop TERM

finish
