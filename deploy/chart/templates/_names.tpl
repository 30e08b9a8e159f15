{{- define "chaski.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* A label of pods has the StatefulSet's name and 11 characters more, and at most 63. */}}
{{- define "chaski.name" -}}
{{ .Release.Name | trunc 45 | trimSuffix "-" }}-chaski
{{- end }}
