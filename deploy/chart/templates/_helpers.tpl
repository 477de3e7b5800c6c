{{- define "biga.labels" -}}
app.kubernetes.io/name: biga
app.kubernetes.io/part-of: biga
{{- end }}
{{- define "biga.pullSecrets" -}}
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
