{{/* What every object of a release carries. */}}
{{- define "fastness.labels" -}}
app.kubernetes.io/name: fastness
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The pods of one role. */}}
{{- define "fastness.selector" -}}
app.kubernetes.io/name: fastness
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{- define "fastness.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}{{ $image.repository }}@{{ $image.digest }}
{{- else -}}{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end }}

{{/* The image of Jobs that build: as somebody said, or the one of the same release beside the control plane's. */}}
{{- define "fastness.builderImage" -}}
{{- if .Values.builds.image -}}{{ .Values.builds.image }}
{{- else -}}{{ .Values.image.repository }}-builder:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end }}

{{/* How parts of a release reach each other: a role, its port. */}}
{{- define "fastness.host" -}}
fastness-{{ .role }}.{{ .root.Release.Namespace }}.svc
{{- end }}

{{/* Where machines reach a door: as somebody said, or by its Service. */}}
{{- define "fastness.url" -}}
{{- $given := (get .root.Values .role).url -}}
{{- if $given -}}{{ $given }}{{- else -}}https://{{ include "fastness.host" . }}:{{ .port }}{{- end -}}
{{- end }}

{{/* Where people reach the page: as somebody said, or by its Ingress; empty where nobody knows. */}}
{{- define "fastness.pageUrl" -}}
{{- $page := .Values.page -}}
{{- if $page.url -}}{{ $page.url }}{{- else if and $page.ingress.enabled $page.ingress.host -}}https://{{ $page.ingress.host }}{{- end -}}
{{- end }}

{{/* Objects that outlive the release, because what they hold cannot be made again. */}}
{{- define "fastness.kept" -}}
{{- if .Values.keep -}}
helm.sh/resource-policy: keep
{{- end -}}
{{- end }}

{{/* Whether an object is there that this release did not make: it belongs to somebody else and is left alone. */}}
{{- define "fastness.foreign" -}}
{{- $there := lookup .object.apiVersion .object.kind (.object.metadata.namespace | default "") .object.metadata.name -}}
{{- if $there -}}
{{- $notes := $there.metadata.annotations | default dict -}}
{{- if ne (get $notes "meta.helm.sh/release-name") .root.Release.Name -}}yes{{- end -}}
{{- end -}}
{{- end }}

{{/* An object of a file, with the labels of the release; what holds keys or the record is kept. */}}
{{- define "fastness.object" -}}
{{- $object := .object -}}
{{- $labels := merge (fromYaml (include "fastness.labels" .root)) ($object.metadata.labels | default dict) -}}
{{- $_ := set $object.metadata "labels" $labels -}}
{{- $lasting := has $object.kind (list "Namespace" "Secret" "ConfigMap" "CustomResourceDefinition") -}}
{{- if and $lasting .root.Values.keep -}}
{{- $notes := merge (dict "helm.sh/resource-policy" "keep") ($object.metadata.annotations | default dict) -}}
{{- $_ := set $object.metadata "annotations" $notes -}}
{{- end -}}
{{- if not (and $lasting (include "fastness.foreign" .)) }}
---
{{ toYaml $object }}
{{- end -}}
{{- end }}
