{{/* Everything that scheduler, controllers and admission have in common. Each of these takes a dict of
     root (the top context), kind (scheduler, controller, admission: in names of values), name (the
     object's) and app (its label). */}}

{{- define "hekla.labels" -}}
{{- with .root.Values.custom.common_labels }}
  labels:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}

{{- define "hekla.image" -}}
{{- $basic := .root.Values.basic -}}
{{- $name := index $basic (printf "%s_image_name" .kind) -}}
{{- $tag := index $basic (printf "%s_image_tag_version" .kind) | default $basic.image_tag_version | default .root.Chart.AppVersion -}}
{{- if $basic.image_registry }}{{ $basic.image_registry }}/{{ end }}{{ $name }}:{{ $tag }}
{{- end }}

{{- define "hekla.account" -}}
{{- $rules := (.root.Files.Get "files/rules.json" | fromJson) -}}
{{- $mine := index $rules .kind -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "hekla.labels" . }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .name }}
  {{- include "hekla.labels" . }}
rules:
{{- range $mine.cluster }}
{{- $needed := true }}
{{- $rule := . }}
{{- if eq $.kind "admission" }}
  {{- $paths := include "hekla.admissions" $.root | splitList "," }}
  {{- if has "namespaces" .resources }}
    {{- $needed = has "/podgroups/mutate" $paths }}
  {{- else if hasKey . "resourceNames" }}
    {{- $names := list }}
    {{- range .resourceNames }}
      {{- $path := trimPrefix "volcano-admission-service" . | replace "-" "/" }}
      {{- if has $path $paths }}{{ $names = append $names . }}{{ end }}
    {{- end }}
    {{- $needed = not (empty $names) }}
    {{- $rule = merge (dict "resourceNames" $names) . }}
  {{- end }}
{{- end }}
{{- if $needed }}
{{- list $rule | toYaml | nindent 0 }}
{{- end }}
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .name }}-role
  {{- include "hekla.labels" . }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ .name }}
subjects:
- kind: ServiceAccount
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "hekla.labels" . }}
rules:
{{- toYaml $mine.local | nindent 0 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "hekla.labels" . }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ .name }}
subjects:
- kind: ServiceAccount
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
{{- end }}

{{/* Head of a Deployment, down to the pod's containers. Takes grace too, in seconds. */}}
{{- define "hekla.deployment" -}}
{{- $custom := .root.Values.custom -}}
{{- $common := $custom.common_labels | default dict -}}
{{- $own := dict "app" .app -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- merge $own (index $custom (printf "%s_labels" .kind) | default dict) $common | toYaml | nindent 4 }}
spec:
  replicas: {{ index $custom (printf "%s_replicas" .kind) }}
  selector:
    matchLabels:
      app: {{ .app }}
  template:
    metadata:
      labels:
        {{- merge (dict "app" .app) (index $custom (printf "%s_podLabels" .kind) | default dict) $common | toYaml | nindent 8 }}
    spec:
      serviceAccountName: {{ .name }}
      priorityClassName: system-cluster-critical
      terminationGracePeriodSeconds: {{ .grace }}
      {{- with .root.Values.basic.image_pull_secret }}
      imagePullSecrets:
      - name: {{ . }}
      {{- end }}
      {{- with or (index $custom (printf "%s_ns" .kind)) $custom.default_ns }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with or (index $custom (printf "%s_tolerations" .kind)) $custom.default_tolerations }}
      tolerations:
        {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- with or (index $custom (printf "%s_sc" .kind)) $custom.default_sc }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      affinity:
      {{- with or (index $custom (printf "%s_affinity" .kind)) $custom.default_affinity }}
        {{- toYaml . | nindent 8 }}
      {{- else }}
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            podAffinityTerm:
              topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  app: {{ .app }}
      {{- end }}
{{- end }}

{{/* What a container has beside its arguments, ports and volumes. Takes scheme and delay of probes. */}}
{{- define "hekla.container" -}}
{{- $custom := .root.Values.custom -}}
image: {{ include "hekla.image" . }}
imagePullPolicy: {{ .root.Values.basic.image_pull_policy }}
livenessProbe:
  httpGet:
    path: /healthz
    port: 11251
    {{- with .scheme }}
    scheme: {{ . }}
    {{- end }}
  initialDelaySeconds: {{ .delay }}
  periodSeconds: 10
  failureThreshold: 6
readinessProbe:
  httpGet:
    path: /healthz
    port: 11251
    {{- with .scheme }}
    scheme: {{ . }}
    {{- end }}
  periodSeconds: 5
{{- with index $custom (printf "%s_resources" .kind) }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with or (index $custom (printf "%s_main_csc" .kind)) $custom.default_csc }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "hekla.election" -}}
- --leader-elect={{ .root.Values.custom.leader_elect_enable }}
{{- if .root.Values.custom.leader_elect_enable }}
- --leader-elect-resource-namespace={{ .root.Release.Namespace }}
{{- end }}
{{- end }}

{{/* Takes port. */}}
{{- define "hekla.metrics" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}-service
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- merge (dict "app" .app) (.root.Values.custom.common_labels | default dict) | toYaml | nindent 4 }}
  annotations:
    prometheus.io/path: /metrics
    prometheus.io/port: {{ .port | quote }}
    prometheus.io/scrape: "true"
spec:
  {{- include "hekla.families" . }}
  selector:
    app: {{ .app }}
  ports:
  - name: metrics
    port: {{ .port }}
    protocol: TCP
    targetPort: {{ .port }}
{{- end }}

{{- define "hekla.families" -}}
{{- with .root.Values.service.ipFamilyPolicy }}
  ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .root.Values.service.ipFamilies }}
  ipFamilies:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}

{{- define "hekla.budget" -}}
{{- if gt (index .root.Values.custom (printf "%s_replicas" .kind) | int) 1 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "hekla.labels" . }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      app: {{ .app }}
{{- end }}
{{- end }}

{{/* The paths that are reviewed, with commas between them. Takes the top context. */}}
{{- define "hekla.admissions" -}}
{{- .Values.custom.enabled_admissions | default (join "," (.Files.Get "files/webhooks.json" | fromJson).paths) | nospace -}}
{{- end }}
