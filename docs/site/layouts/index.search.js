{{- $all := slice -}}
{{- range site.Pages -}}
{{- if .File -}}
{{- $page := . -}}
{{- $title := "" -}}
{{- range $i, $part := split (print "\n" .RawContent) "\n#" -}}
{{- $lines := split $part "\n" -}}
{{- $heading := replaceRE `[#*]|\x60|\[([^\]]*)\]\([^)]*\)` "$1" (index $lines 0) | strings.TrimSpace -}}
{{- if and $heading (not $title) }}{{ $title = $heading }}{{ end -}}
{{- $text := replaceRE `\]\([^)]*\)|[|*\x60\[\]]` " " (delimit (after 1 $lines) " ") -}}
{{- if $heading -}}
{{- $at := cond (eq $heading $title) "" (print "#" (anchorize $heading)) -}}
{{- $all = $all | append (dict "page" $title "heading" $heading "url" (print (strings.TrimPrefix "/" $page.RelPermalink) $at) "text" (replaceRE `\s+` " " $text)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
searchable({{ $all | jsonify | safeJS }})
