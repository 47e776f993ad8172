package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/noderes/kubectl-noderes/pkg/collect/nodepod"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// protobuf is asked for where there may be tens of thousands of objects: it is
// smaller than JSON, and read in a fraction of the time. It drops fields that
// are newer than our types, so the subjects themselves are read as JSON.
const protobuf = "application/vnd.kubernetes.protobuf,application/json;q=0.9"

// protobufMagic begins every answer in protobuf.
var protobufMagic = []byte("k8s\x00")

// beside are the resources of which a report reads little of most objects.
var beside = map[string]func(page []byte) (items map[string]json.RawMessage, next string, err error){
	"pods": func(page []byte) (map[string]json.RawMessage, string, error) {
		var list corev1.PodList
		if err := decodeList(page, &list); err != nil {
			return nil, "", err
		}
		items := make(map[string]json.RawMessage, len(list.Items))
		for i := range list.Items {
			pod := &list.Items[i]
			if nodepod.Ours(pod) { // told by annotations that are about to go
				continue
			}
			raw, err := podBeside(pod)
			if err != nil {
				return nil, "", err
			}
			items[pod.Namespace+"/"+pod.Name] = raw
		}
		return items, list.Continue, nil
	},
	"nodes": func(page []byte) (map[string]json.RawMessage, string, error) {
		var list corev1.NodeList
		if err := decodeList(page, &list); err != nil {
			return nil, "", err
		}
		items := make(map[string]json.RawMessage, len(list.Items))
		for i := range list.Items {
			node := &list.Items[i]
			node.TypeMeta, node.ManagedFields = kinds["nodes"], nil
			delete(node.Annotations, lastApplied)
			node.Status.Images, node.Status.VolumesInUse, node.Status.VolumesAttached = nil, nil, nil
			raw, err := json.Marshal(node)
			if err != nil {
				return nil, "", err
			}
			items["/"+node.Name] = raw
		}
		return items, list.Continue, nil
	},
}

// listBeside reads all pages of a list of the whole cluster, or nothing of it.
func (c *collector) listBeside(ctx context.Context, resource, path string, query url.Values) error {
	query.Set("limit", "500")
	items := map[string]item{}
	total := 0
	for {
		data, err := c.client.getAs(ctx, path, query, protobuf)
		if err != nil {
			return err
		}
		page, next, err := beside[resource](data)
		if err != nil {
			return err
		}
		for key, object := range page {
			if total += len(object); total > snapshot.MaxFileBytes {
				return snapshot.ErrFileTooLarge
			}
			items[key] = item{object, ofCluster}
		}
		switch {
		case next == "":
			c.putAll(resource, items)
			return nil
		case next == query.Get("continue"):
			return errors.New("the list's pages have no end")
		}
		query.Set("continue", next)
	}
}

// decodeList reads a list in protobuf or JSON.
func decodeList(data []byte, list interface{ Unmarshal([]byte) error }) error {
	enveloped, ok := bytes.CutPrefix(data, protobufMagic)
	if !ok {
		if err := json.Unmarshal(data, list); err != nil {
			return errors.New("the answer is no list")
		}
		return nil
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(enveloped); err != nil {
		return errors.New("the answer is no list in protobuf")
	}
	if err := list.Unmarshal(envelope.Raw); err != nil {
		return errors.New("the answer is no list of that kind in protobuf")
	}
	return nil
}

// podBeside leaves out of a pod what says nothing of where it can run, what
// holds it there and what it needs. A program whose settings are kept is whole.
func podBeside(pod *corev1.Pod) (json.RawMessage, error) {
	pod.TypeMeta, pod.ManagedFields = kinds["pods"], nil
	if settingsBy(func(key string) string { return pod.Labels[key] }) != nil {
		raw, err := json.Marshal(pod)
		if err == nil {
			raw, _, err = redact(raw, "pods", ofCluster)
		}
		return raw, err
	}
	pod.GenerateName = ""
	trimAnnotations(&pod.ObjectMeta)
	s := &pod.Spec
	s.SecurityContext, s.ImagePullSecrets, s.DNSConfig, s.DNSPolicy, s.SchedulerName, s.EnableServiceLinks, s.HostAliases = nil, nil, nil, "", "", nil, nil
	s.ServiceAccountName, s.DeprecatedServiceAccount, s.AutomountServiceAccountToken = "", "", nil
	for i := range s.InitContainers {
		trimContainer(&s.InitContainers[i])
	}
	for i := range s.Containers {
		trimContainer(&s.Containers[i])
	}
	s.EphemeralContainers = nil // they request nothing
	for i := range s.Volumes {
		v := &s.Volumes[i].VolumeSource
		switch {
		case v.Projected != nil:
			v.Projected = &corev1.ProjectedVolumeSource{}
		case v.ConfigMap != nil:
			v.ConfigMap = &corev1.ConfigMapVolumeSource{}
		case v.Secret != nil:
			v.Secret = &corev1.SecretVolumeSource{}
		case v.DownwardAPI != nil:
			v.DownwardAPI = &corev1.DownwardAPIVolumeSource{}
		}
	}
	status := &pod.Status
	status.HostIP, status.HostIPs, status.PodIP, status.PodIPs = "", nil, "", nil
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses} {
		for i := range list {
			list[i].Image, list[i].ImageID, list[i].ContainerID, list[i].VolumeMounts, list[i].User = "", "", "", nil, nil
		}
	}
	return json.Marshal(pod)
}

// trimContainer keeps its name, image, ports, resources and restart policy.
func trimContainer(c *corev1.Container) {
	*c = corev1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, Resources: c.Resources, ResizePolicy: c.ResizePolicy,
		RestartPolicy: c.RestartPolicy, RestartPolicyRules: c.RestartPolicyRules}
}

// trimAnnotations keeps those that decide over pods and nodes.
func trimAnnotations(meta *metav1.ObjectMeta) {
	for key := range meta.Annotations {
		if !decides(key) {
			delete(meta.Annotations, key)
		}
	}
}

func decides(annotation string) bool {
	return strings.Contains(annotation, "karpenter.") || strings.HasPrefix(annotation, "cluster-autoscaler.kubernetes.io/") ||
		strings.HasPrefix(annotation, "kubernetes.io/config.") || annotation == corev1.PodDeletionCost
}

// trim leaves out of one object of many what is not read of it: of Deployments
// the pods that they make, but for those whose settings are.
func trim(o map[string]any, resource string) {
	if resource != "deployments" {
		return
	}
	meta, _ := o["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	for key := range annotations {
		if !decides(key) {
			delete(annotations, key)
		}
	}
	spec, _ := o["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	templateMeta, _ := template["metadata"].(map[string]any)
	if settingsOf(templateMeta) == nil {
		delete(template, "spec")
	}
}
