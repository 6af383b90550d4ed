{{- /* Names are those of config/, whatever the release is called: a namespace has room for one operator. */ -}}

{{- define "axiom.labels" -}}
app.kubernetes.io/name: axiom-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end }}

{{- define "axiom.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "axiom.username" -}}
system:serviceaccount:{{ .Release.Namespace }}:axiom-controller-manager
{{- end }}

{{- define "axiom.subject" -}}
- kind: ServiceAccount
  name: axiom-controller-manager
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- /* An object of files/, given as dict "object" "root", with the chart's labels, and in the release's namespace if it has one. */ -}}
{{- define "axiom.object" -}}
{{- $metadata := .object.metadata }}
{{- $_ := set $metadata "labels" (merge (get $metadata "labels" | default dict) (include "axiom.labels" .root | fromYaml)) }}
{{- if hasKey $metadata "namespace" }}{{ $_ := set $metadata "namespace" .root.Release.Namespace }}{{ end }}
{{- toYaml .object }}
{{- end }}

{{- /* A webhook configuration of files/, given as dict "file" "root". */ -}}
{{- define "axiom.webhooks" -}}
{{- $root := .root }}
{{- $config := $root.Files.Get .file | fromYaml }}
{{- $_ := set $config.metadata "name" ($config.metadata.name | replace "axiom-" (printf "%s-" $root.Values.webhooks.namePrefix)) }}
{{- if eq $root.Values.certificate.source "CertManager" }}
{{- $_ := set $config.metadata "annotations" (dict "cert-manager.io/inject-ca-from" (printf "%s/axiom-serving-cert" $root.Release.Namespace)) }}
{{- end }}
{{- range $config.webhooks }}
{{- $_ := set .clientConfig.service "namespace" $root.Release.Namespace }}
{{- if $root.Values.namespaces }}
{{- $_ := set . "namespaceSelector" (dict "matchExpressions" (list (dict "key" "kubernetes.io/metadata.name" "operator" "In" "values" $root.Values.namespaces))) }}
{{- if and (eq $config.kind "ValidatingWebhookConfiguration") (has .name (list "status.axiom.apitomy.io" "humantask.axiom.apitomy.io")) }}
{{- $_ := set . "matchConditions" (list (dict "name" "not-the-operator" "expression" (printf "request.userInfo.username != %q" (include "axiom.username" $root)))) }}
{{- end }}
{{- end }}
{{- end }}
{{- include "axiom.object" (dict "object" $config "root" $root) }}
{{- end }}
