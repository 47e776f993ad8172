package diagnose

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A file of templates is read or refused; what is read has no request below
// zero, which the API server would refuse.
func FuzzTemplates(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, resources: {limits: {cpu: 1999.9999m, memory: 1Gi}}}]}"))
	f.Add([]byte("kind: List\napiVersion: v1\nitems: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: {containers: [{name: c}]}}}}]"))
	f.Add([]byte("---\n---\n{}"))
	f.Add([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, resources: {limits: {cpu: 12345678901234567890e999999999}}}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		templates, err := Templates(data, "file:pod.yaml")
		if err != nil {
			return
		}
		for _, template := range templates {
			for _, c := range template.Pod.Spec.Containers {
				if q, ok := c.Resources.Requests[corev1.ResourceCPU]; ok && q.Sign() < 0 {
					t.Errorf("container %q requests %s", c.Name, q.String())
				}
			}
		}
	})
}

// A setting is understood or refused.
func FuzzParseSettings(f *testing.F) {
	for _, s := range []string{"kubeletVersion=1.36", "reservedSystemCPUs=0-1", "systemReserved.cpu=1e30", "featureGates.Nope=true", "cpuManagerPolicyOptions.full-pcpus-only=true", "="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := ParseSettings([]string{text}); err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
	})
}
