{{/* Objects of a file of k8s/, as a list. */}}
{{- define "parley.objects" -}}
{{- $text := .root.Files.Get .file -}}
{{- if not $text }}{{ fail (printf "%s is missing: the chart's links to k8s/ were not followed" .file) }}{{ end -}}
{{- $list := list -}}
{{- range splitList "\n---\n" $text }}{{ $list = append $list (fromYaml .) }}{{ end -}}
{{- dict "list" $list | toYaml -}}
{{- end -}}

{{/* The image of a service. */}}
{{- define "parley.image" -}}
{{- $own := (get .root.Values.services .name | default dict).tag -}}
{{ .root.Values.image.prefix }}{{ .name }}:{{ $own | default .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end -}}

{{/* An object with the labels that kustomize gives it, printed. */}}
{{- define "parley.labelled" -}}
{{- $labels := dict "app.kubernetes.io/name" .name "app.kubernetes.io/part-of" "parley" -}}
{{- $_ := set .object.metadata "labels" (merge (dict) $labels (.object.metadata.labels | default dict)) -}}
{{ toYaml .object }}
{{- end -}}

{{/* What every pod gets: images of ours, labels, and the values for all pods. pod is a template (metadata, spec). */}}
{{- define "parley.pod" -}}
{{- $root := .root -}}
{{- $pod := .pod -}}
{{- $metadata := $pod.metadata | default dict -}}
{{- $_ := set $metadata "labels" (merge (dict) (dict "app.kubernetes.io/name" .name "app.kubernetes.io/part-of" "parley") ($metadata.labels | default dict)) -}}
{{- if $root.Values.podAnnotations }}{{ $_ := set $metadata "annotations" (merge (dict) $root.Values.podAnnotations ($metadata.annotations | default dict)) }}{{ end -}}
{{- $_ := set $pod "metadata" $metadata -}}
{{- $containers := concat ($pod.spec.initContainers | default list) $pod.spec.containers -}}
{{- range $container := $containers -}}
{{- if hasPrefix "parley/" .image }}{{ $_ := set . "image" (include "parley.image" (dict "root" $root "name" (trimPrefix "parley/" .image))) }}{{ end -}}
{{- with $root.Values.image.pullPolicy }}{{ $_ := set $container "imagePullPolicy" . }}{{ end -}}
{{- if $root.Values.tls.enabled }}
{{- $_ := set . "volumeMounts" (prepend (.volumeMounts | default list) (dict "name" "engines-ca" "mountPath" "/tls" "readOnly" true)) -}}
{{- if ne .name "store" }}{{ $_ := set . "env" (prepend (.env | default list) (dict "name" "SSL_CERT_DIR" "value" "/tls")) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if $root.Values.tls.enabled }}
{{- $secret := dict "secretName" "parley-engines-ca" "defaultMode" 0o444 -}}
{{- $_ := set $pod.spec "volumes" (prepend ($pod.spec.volumes | default list) (dict "name" "engines-ca" "secret" $secret)) -}}
{{- end -}}
{{- with $root.Values.nodeSelector }}{{ $_ := set $pod.spec "nodeSelector" . }}{{ end -}}
{{- with $root.Values.tolerations }}{{ $_ := set $pod.spec "tolerations" . }}{{ end -}}
{{- with $root.Values.priorityClassName }}{{ $_ := set $pod.spec "priorityClassName" . }}{{ end -}}
{{- with $root.Values.image.pullSecrets }}
{{- $names := list -}}
{{- range . }}{{ $names = append $names (dict "name" .) }}{{ end -}}
{{- $_ := set $pod.spec "imagePullSecrets" $names -}}
{{- end -}}
{{- end -}}

{{/* The settings of a service, as JSON: those of k8s/base, then those of the values. */}}
{{- define "parley.config" -}}
{{- $config := dict -}}
{{- $kustomization := .root.Files.Get (printf "base/%s/kustomization.yaml" .name) | fromYaml -}}
{{- range (first $kustomization.configMapGenerator).literals }}
{{- $parts := splitn "=" 2 . -}}
{{- $_ := set $config $parts._0 $parts._1 -}}
{{- end -}}
{{- if eq .name "widget-api" }}{{ $_ := set $config "PUBLIC_URL" (printf "https://%s" .root.Values.hosts.widget) }}{{ end -}}
{{- if eq .name "panel" }}
{{- $_ := set $config "PANEL_URL" (printf "https://%s" .root.Values.hosts.panel) -}}
{{- $_ := set $config "WIDGET_URL" (printf "https://%s" .root.Values.hosts.widget) -}}
{{- $_ := set $config "CLIENT_URL" (printf "https://%s" .root.Values.hosts.client) -}}
{{- end -}}
{{- if and .root.Values.otlp.enabled (ne .name "streams") }}{{ $config = merge (dict) .root.Values.otlp.config $config }}{{ end -}}
{{- if has .name (list "client-api" "widget-api" "socket-gateway" "panel") }}{{ $_ := set $config "TRUSTED_PROXIES" (join "," .root.Values.edge.proxies) }}{{ end -}}
{{- if and .root.Values.s3.enabled (has .name (list "widget-api" "panel")) }}{{ $config = merge (dict "FILE_STORE" "s3") .root.Values.s3.config $config }}{{ end -}}
{{- $config = merge (dict) .values $config -}}
{{- if and .root.Values.s3.enabled (eq .name "streams") }}{{ $_ := set $config "FILE_STORE_MAX_BYTES" "0" }}{{ end -}}
{{- $text := dict -}}
{{- range $k, $v := $config }}{{ $_ := set $text $k (toString $v) }}{{ end -}}
{{ toJson $text }}
{{- end -}}
