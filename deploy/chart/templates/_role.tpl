{{/*
The Deployment of one role with its disruption budget.
root, role, arguments (of `fastness serve`), ports (name to number), mounts (a list of volumes, each mounted at `at`, read-only).
*/}}
{{- define "fastness.role" -}}
{{- $root := .root -}}
{{- $values := get $root.Values .role -}}
{{- $names := dict "root" $root "role" .role }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: fastness-{{ .role }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "fastness.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
spec:
  replicas: {{ $values.replicas }}
  revisionHistoryLimit: 3
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  selector:
    matchLabels:
      {{- include "fastness.selector" $names | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "fastness.labels" $root | nindent 8 }}
        app.kubernetes.io/component: {{ .role }}
    spec:
      serviceAccountName: fastness-{{ .role }}
      enableServiceLinks: false
      terminationGracePeriodSeconds: 30
      {{- with $root.Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $root.Values.image.pullSecrets }}
      imagePullSecrets: {{ toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- include "fastness.podSecurity" $root | nindent 8 }}
      topologySpreadConstraints:
      {{- range list "kubernetes.io/hostname" $root.Values.zoneKey }}
      {{- if . }}
      - maxSkew: 1
        topologyKey: {{ . }}
        whenUnsatisfiable: ScheduleAnyway
        labelSelector:
          matchLabels:
            {{- include "fastness.selector" $names | nindent 12 }}
      {{- end }}
      {{- end }}
      {{- with $root.Values.nodeSelector }}
      nodeSelector: {{ toYaml . | nindent 8 }}
      {{- end }}
      {{- with $root.Values.tolerations }}
      tolerations: {{ toYaml . | nindent 8 }}
      {{- end }}
      containers:
      - name: {{ .role }}
        image: {{ include "fastness.image" $root | quote }}
        imagePullPolicy: {{ $root.Values.image.pullPolicy }}
        {{- with $root.Values.image.command }}
        command: {{ toJson . }}
        {{- end }}
        args:
        - serve
        - --roles={{ .role }}
        - --identity=$(POD_NAME)
        - --metrics-host=0.0.0.0
        - --log-level={{ $root.Values.logLevel }}
        {{- range $root.Values.adopt }}
        - --adopt={{ . }}
        {{- end }}
        {{- range .arguments }}
        - {{ . | quote }}
        {{- end }}
        env:
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        - {name: HOME, value: /tmp}
        ports:
        - {name: metrics, containerPort: 9090}
        {{- range $name, $port := .ports }}
        - {name: {{ $name }}, containerPort: {{ $port }}}
        {{- end }}
        {{- if .ports }}
        lifecycle:
          # Whoever was told of this pod goes on to come for a moment; the API server does not ask a webhook twice.
          preStop: {sleep: {seconds: {{ $root.Values.leaveSeconds }}}}
        {{- end }}
        startupProbe:
          httpGet: {path: /livez, port: metrics}
          periodSeconds: 1
          timeoutSeconds: 5
          failureThreshold: 120
        livenessProbe:
          httpGet: {path: /livez, port: metrics}
          periodSeconds: 15
          timeoutSeconds: 10
          failureThreshold: 4
        readinessProbe:
          httpGet: {path: /readyz, port: metrics}
          periodSeconds: 3
          timeoutSeconds: 5
        resources: {{ toYaml $values.resources | nindent 10 }}
        securityContext:
          {{- include "fastness.containerSecurity" $root | nindent 10 }}
        volumeMounts:
        - {name: tmp, mountPath: /tmp}
        {{- range .mounts }}
        - {name: {{ .volume.name }}, mountPath: {{ .at }}, readOnly: true}
        {{- end }}
      volumes:
      - name: tmp
        emptyDir: {sizeLimit: 64Mi}
      {{- range .mounts }}
      - {{ toYaml .volume | nindent 8 | trim }}
      {{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: fastness-{{ .role }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "fastness.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "fastness.selector" $names | nindent 6 }}
{{- end }}

{{- define "fastness.podSecurity" -}}
runAsNonRoot: true
{{- with .Values.runAsUser }}
runAsUser: {{ . }}
runAsGroup: {{ . }}
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "fastness.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/*
The Service of one role: root, role, ports (name to a pair of the Service's and the pod's), affinity if any. `inside`: for this
cluster alone, whatever the values say; what machines are to reach has a Service of its own then, whose name ends in `suffix`.
*/}}
{{- define "fastness.service" -}}
{{- $values := get .root.Values .role -}}
{{- $service := $values.service | default (dict "type" "ClusterIP") }}
{{- if .inside }}{{ $service = dict "type" "ClusterIP" }}{{ end }}
---
apiVersion: v1
kind: Service
metadata:
  name: fastness-{{ .role }}{{ .suffix }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "fastness.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
  {{- with $service.annotations }}
  annotations: {{ toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ $service.type }}
  {{- with .affinity }}
  # A session is in the memory of one replica: whoever logged in there goes on there.
  sessionAffinity: {{ . }}
  {{- end }}
  selector:
    {{- include "fastness.selector" . | nindent 4 }}
  ports:
  {{- range $name, $pair := .ports }}
  - name: {{ $name }}
    port: {{ index $pair 0 }}
    targetPort: {{ index $pair 1 }}
    {{- if and $service.nodePort (eq $name "https") }}
    nodePort: {{ $service.nodePort }}
    {{- end }}
  {{- end }}
{{- end }}
