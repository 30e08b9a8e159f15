{{- define "chaski.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "chaski.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}-chaski
{{- end }}
