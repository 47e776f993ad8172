package collect

import "strings"

// trimPod leaves out of a pod beside the subjects what says nothing of where it
// can run, what holds it there and what it needs: there may be tens of thousands
// of them.
func trimPod(pod map[string]any) {
	meta, _ := pod["metadata"].(map[string]any)
	delete(meta, "generateName")
	trimAnnotations(meta)
	spec, _ := pod["spec"].(map[string]any)
	for _, field := range []string{"securityContext", "imagePullSecrets", "dnsConfig", "dnsPolicy", "schedulerName", "enableServiceLinks", "hostAliases", "serviceAccount", "serviceAccountName", "automountServiceAccountToken"} {
		delete(spec, field)
	}
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		eachOf(spec[list], func(container map[string]any) {
			for _, field := range []string{
				"env", "envFrom", "command", "args", "workingDir", "volumeMounts", "volumeDevices", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle",
				"securityContext", "imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy",
			} {
				delete(container, field)
			}
		})
	}
	eachOf(spec["volumes"], func(volume map[string]any) {
		for _, source := range []string{"projected", "configMap", "secret", "downwardAPI"} {
			if volume[source] != nil {
				volume[source] = map[string]any{}
			}
		}
	})
	status, _ := pod["status"].(map[string]any)
	for _, field := range []string{"hostIP", "hostIPs", "podIP", "podIPs", "observedGeneration"} {
		delete(status, field)
	}
	for _, list := range []string{"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"} {
		eachOf(status[list], func(container map[string]any) {
			for _, field := range []string{"image", "imageID", "containerID", "volumeMounts", "user"} {
				delete(container, field)
			}
		})
	}
}

// trim leaves out of one object of many what is not read of it.
func trim(o map[string]any, resource string) {
	meta, _ := o["metadata"].(map[string]any)
	spec, _ := o["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	status, _ := o["status"].(map[string]any)
	switch resource {
	case "pods":
		trimPod(o)
	case "nodes":
		for _, field := range []string{"images", "volumesInUse", "volumesAttached"} {
			delete(status, field)
		}
	case "daemonsets":
		trimAnnotations(meta)
		trimPod(template)
	case "deployments":
		trimAnnotations(meta)
		templateMeta, _ := template["metadata"].(map[string]any)
		if settingsOf(templateMeta) == nil { // it is read of those only
			delete(template, "spec")
		}
	}
}

// trimAnnotations keeps those that decide over pods and nodes.
func trimAnnotations(meta map[string]any) {
	annotations, _ := meta["annotations"].(map[string]any)
	for key := range annotations {
		if !strings.Contains(key, "karpenter.") && !strings.HasPrefix(key, "cluster-autoscaler.kubernetes.io/") &&
			!strings.HasPrefix(key, "kubernetes.io/config.") && key != "controller.kubernetes.io/pod-deletion-cost" {
			delete(annotations, key)
		}
	}
}

func eachOf(list any, do func(map[string]any)) {
	items, _ := list.([]any)
	for _, item := range items {
		if o, ok := item.(map[string]any); ok {
			do(o)
		}
	}
}
