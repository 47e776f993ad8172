package collect

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// sizeVariables size a runtime by their value alone.
var sizeVariables = []string{
	"GOMAXPROCS", "GOMEMLIMIT", "GOGC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "UV_THREADPOOL_SIZE",
	"DOTNET_PROCESSOR_COUNT", "WEB_CONCURRENCY", "RAILS_MAX_THREADS", "TOKIO_WORKER_THREADS", "RAYON_NUM_THREADS",
}

// optionVariables hold options, of which some size a runtime.
var optionVariables = []string{
	"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "JAVA_OPTS", "JAVA_OPTIONS", "JVM_OPTS", "CATALINA_OPTS",
	"ES_JAVA_OPTS", "LS_JAVA_OPTS", "KAFKA_HEAP_OPTS", "NODE_OPTIONS",
}

var (
	sizeValue  = regexp.MustCompile(`^[0-9]{1,20}([.,][0-9]{1,9})*[A-Za-z%]{0,3}$|^off$`)
	sizeOption = regexp.MustCompile(`^(-X(mx|ms|mn|ss)[0-9]{1,18}[kKmMgGtT]?|-XX:[+-][A-Za-z0-9]{1,60}|-XX:[A-Za-z0-9]{1,60}=[0-9]{1,18}(\.[0-9]{1,9})?[kKmMgGtT]?|--max-(old|semi)-space-size=[0-9]{1,9})$`)
)

// redact takes out of an API object what a bundle never keeps, gives it its
// kind, and trims what is only one of many. The key orders objects of one
// resource.
func redact(data []byte, resource string, as rank) (object json.RawMessage, key string, err error) {
	var o map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&o); err != nil || o == nil {
		return nil, "", errors.New("not an object")
	}
	meta, _ := o["metadata"].(map[string]any)
	delete(meta, "managedFields")
	if annotations, ok := meta["annotations"].(map[string]any); ok {
		delete(annotations, lastApplied)
	}
	if spec, ok := o["spec"].(map[string]any); ok {
		if resource == "pods" {
			redactPodSpec(spec, settingsOf(meta))
		}
		redactTemplate(spec["template"])
	}
	if as == ofCluster {
		trim(o, resource)
	}
	if of, ok := kinds[resource]; ok {
		o["apiVersion"], o["kind"] = of.APIVersion, of.Kind
	}
	object, err = json.Marshal(o)
	namespace, _ := meta["namespace"].(string)
	name, _ := meta["name"].(string)
	return object, namespace + "/" + name, err
}

// redactTemplate treats the pods that a workload makes as pods.
func redactTemplate(template any) {
	t, _ := template.(map[string]any)
	meta, _ := t["metadata"].(map[string]any)
	if annotations, ok := meta["annotations"].(map[string]any); ok {
		delete(annotations, lastApplied)
	}
	if spec, ok := t["spec"].(map[string]any); ok {
		redactPodSpec(spec, settingsOf(meta))
	}
}

// redactPodSpec keeps of commands and variables what sizes a runtime, and the
// settings of what removes nodes.
func redactPodSpec(spec map[string]any, kept *settings) {
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		containers, _ := spec[list].([]any)
		for _, c := range containers {
			container, ok := c.(map[string]any)
			if !ok {
				continue
			}
			for _, field := range []string{"command", "args"} {
				if words, ok := container[field].([]any); ok {
					container[field] = append(sizing(words), kept.flags(words)...)
				}
			}
			variables, _ := container["env"].([]any)
			for _, v := range variables {
				if variable, ok := v.(map[string]any); ok {
					if !kept.variable(variable) {
						redactVariable(variable)
					}
				}
			}
			for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
				redactHandler(container[probe])
			}
			if lifecycle, ok := container["lifecycle"].(map[string]any); ok {
				redactHandler(lifecycle["postStart"])
				redactHandler(lifecycle["preStop"])
			}
		}
	}
}

// redactHandler takes commands and HTTP headers out of a probe or a hook; that
// there is one stays.
func redactHandler(handler any) {
	h, _ := handler.(map[string]any)
	if exec, ok := h["exec"].(map[string]any); ok {
		delete(exec, "command")
	}
	if get, ok := h["httpGet"].(map[string]any); ok {
		delete(get, "httpHeaders")
		delete(get, "path") // a query may hold a token
	}
}

func redactVariable(v map[string]any) {
	name, _ := v["name"].(string)
	value, ok := v["value"].(string)
	switch {
	case !ok:
		delete(v, "value")
	case slices.Contains(sizeVariables, name) && sizeValue.MatchString(value):
	case slices.Contains(optionVariables, name):
		if kept := sizing([]any{value}); len(kept) > 0 {
			v["value"] = join(kept)
			return
		}
		delete(v, "value")
	default:
		delete(v, "value")
	}
}

// sizing are the words that size a runtime.
func sizing(words []any) []any {
	kept := []any{}
	for _, w := range words {
		text, _ := w.(string)
		for word := range strings.FieldsSeq(text) {
			if sizeOption.MatchString(word) {
				kept = append(kept, word)
			}
		}
	}
	return kept
}

func join(words []any) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.(string))
	}
	return b.String()
}

// redactKubelet takes out of the kubelet's configuration the header with which
// it fetches manifests, which may authenticate.
func redactKubelet(data []byte) ([]byte, error) {
	var o map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&o); err != nil || o == nil {
		return nil, errors.New("the kubelet's answer is no JSON object")
	}
	if config, ok := o["kubeletconfig"].(map[string]any); ok {
		delete(config, "staticPodURLHeader")
	}
	return json.Marshal(o)
}
