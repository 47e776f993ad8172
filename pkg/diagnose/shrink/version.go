package shrink

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/disruption/price"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// version is which Karpenter's rules apply, and how that is known.
type version struct {
	text  string // as told; "" where nothing tells it
	rules karpenter.Rules
	// exact: the rules are those of this very minor version.
	exact bool
	// evidence is what told it; zero where nothing did.
	evidence report.Evidence
}

// readVersion finds Karpenter's version: the image tag of its controller, the
// build_info of its metrics, what the question supposes, or else the default.
func readVersion(c *Cluster, supposed string) version {
	for _, told := range append(controllerImages(c), buildInfo(c), report.Evidence{Source: "flag:--karpenter-version", Value: supposed}) {
		text := told.Value
		if told.Field == "image" {
			text = imageTag(told.Value)
		}
		if text == "" {
			continue
		}
		rules, exact, err := karpenter.RulesFor(text)
		if err != nil {
			continue
		}
		told.Means = "Karpenter's version"
		return version{text: text, rules: rules, exact: exact, evidence: told}
	}
	return version{rules: karpenter.DefaultRules(), exact: true}
}

// controller is one container of Karpenter's controller, of a pod or of the
// template of its Deployment.
type controller struct {
	source    string
	container corev1.Container
}

// controllers are those of pods first. They are looked for once.
func (c *Cluster) controllers() []controller {
	if c.karpenters == nil {
		c.karpenters = c.findControllers()
	}
	return c.karpenters
}

func (c *Cluster) findControllers() []controller {
	out := []controller{}
	for i := range c.pods {
		p := &c.pods[i]
		if k, ok := controllerContainer(p.Labels, p.Spec.Containers); ok && p.DeletionTimestamp == nil {
			out = append(out, controller{"api:pods/" + p.Namespace + "/" + p.Name, k})
		}
	}
	deployments, err := c.snap.Deployments()
	if err != nil {
		return out
	}
	for i := range deployments {
		d := &deployments[i]
		if k, ok := controllerContainer(d.Spec.Template.Labels, d.Spec.Template.Spec.Containers); ok {
			out = append(out, controller{"api:deployments/" + d.Namespace + "/" + d.Name, k})
		}
	}
	return out
}

// controllerImages are the images of Karpenter's controllers.
func controllerImages(c *Cluster) []report.Evidence {
	var out []report.Evidence
	for _, k := range c.controllers() {
		if k.container.Image != "" {
			out = append(out, report.Evidence{Source: k.source, Field: "image", Value: k.container.Image})
		}
	}
	return out
}

// controllerContainer is the container that is Karpenter's controller, as its
// chart labels and names it.
func controllerContainer(labels map[string]string, containers []corev1.Container) (corev1.Container, bool) {
	if labels["app.kubernetes.io/name"] != "karpenter" && labels["k8s-app"] != "karpenter" && labels["app"] != "karpenter" {
		return corev1.Container{}, false
	}
	for _, k := range containers {
		if k.Name == "controller" || strings.Contains(k.Image, "karpenter") {
			return k, true
		}
	}
	return corev1.Container{}, false
}

// imageTag is the tag of an image reference, "" without one.
func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	name := image[strings.LastIndex(image, "/")+1:]
	_, tag, _ := strings.Cut(name, ":")
	return tag
}

// buildInfo is the version that Karpenter's metrics tell.
func buildInfo(c *Cluster) report.Evidence {
	if c.metrics.Version == "" {
		return report.Evidence{}
	}
	return report.Evidence{Source: metricsSource, Field: price.BuildInfo, Value: c.metrics.Version}
}
