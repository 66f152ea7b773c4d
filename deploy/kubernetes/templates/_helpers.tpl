{{/* A file of this folder, as a folder and a path, with the names of what who installs has made. */}}
{{- define "tandem.read" }}
{{- $chart := index . 0 }}
{{- $text := $chart.Files.Get (join "/" (rest .)) }}
{{- range $what, $name := $chart.Values.names }}{{ $text = replace (print "tandem-" $what) $name $text }}{{ end }}
{{- $text }}
{{- end }}
{{/* Puts .patch on .target, in place, as kustomize does: maps key by key, lists of named items by name with those of
the patch first; any other value takes the old one's place, and null removes it. */}}
{{- define "tandem.patch" }}
{{- $target := .target }}
{{- range $key, $value := .patch }}
  {{- $old := get $target $key }}
  {{- if kindIs "invalid" $value }}
    {{- $_ := unset $target $key }}
  {{- else if and (kindIs "map" $value) (kindIs "map" $old) }}
    {{- include "tandem.patch" (dict "target" $old "patch" $value) }}
  {{- else if and $value (kindIs "slice" $value) (kindIs "slice" $old) (kindIs "map" (first $value))
      (hasKey (first $value) "name") }}
    {{- $items := list }}
    {{- range $item := $value }}
      {{- range $old }}
        {{- if eq .name $item.name }}
          {{- include "tandem.patch" (dict "target" . "patch" $item) }}
          {{- $item = . }}
        {{- end }}
      {{- end }}
      {{- $items = append $items $item }}
    {{- end }}
    {{- range $old }}{{ if not (has . $items) }}{{ $items = append $items . }}{{ end }}{{ end }}
    {{- $_ := set $target $key $items }}
  {{- else }}
    {{- $_ := set $target $key $value }}
  {{- end }}
{{- end }}
{{- end }}
{{/* The values as patches. */}}
{{- define "tandem.values" }}
- kind: Deployment
  spec:
    {{- if not .autoscaling.enabled }}
    replicas: {{ .replicas }}
    {{- end }}
    template:
      spec:
        {{- with pick . "serviceAccountName" "imagePullSecrets" "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        containers:
          - name: tandem
            resources: {{ toJson .resources }}
- kind: HorizontalPodAutoscaler
  {{- if .autoscaling.enabled }}
  spec: {{ omit .autoscaling "enabled" | toJson }}
  {{- else }}
  $patch: delete
  {{- end }}
- kind: ServiceMonitor
  {{- if .serviceMonitor.enabled }}
  metadata: {{ pick .serviceMonitor "labels" | toJson }}
  {{- else }}
  $patch: delete
  {{- end }}
{{- if not .networkPolicy.enabled }}
- kind: NetworkPolicy
  $patch: delete
{{- end }}
{{- if .serviceAccountName }}
- kind: ServiceAccount
  $patch: delete
{{- end }}
{{- with .state }}
- kind: PersistentVolumeClaim
  spec:
    {{- toYaml (pick . "storageClassName") | nindent 4 }}
    {{- with .size }}
    resources: {requests: {storage: {{ . }}}}
    {{- end }}
{{- end }}
{{- end }}
