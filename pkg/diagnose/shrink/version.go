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

// controllerImages are the images of Karpenter's controller, of its pods first.
func controllerImages(c *Cluster) []report.Evidence {
	var out []report.Evidence
	for i := range c.pods {
		p := &c.pods[i]
		if image := controllerImage(p.Labels, p.Spec.Containers); image != "" && p.DeletionTimestamp == nil {
			out = append(out, report.Evidence{Source: "api:pods/" + p.Namespace + "/" + p.Name, Field: "image", Value: image})
		}
	}
	deployments, err := c.snap.Deployments()
	if err != nil {
		return out
	}
	for i := range deployments {
		d := &deployments[i]
		if image := controllerImage(d.Spec.Template.Labels, d.Spec.Template.Spec.Containers); image != "" {
			out = append(out, report.Evidence{Source: "api:deployments/" + d.Namespace + "/" + d.Name, Field: "image", Value: image})
		}
	}
	return out
}

// controllerImage is the image of a container that is Karpenter's controller,
// as its chart labels and names it.
func controllerImage(labels map[string]string, containers []corev1.Container) string {
	if labels["app.kubernetes.io/name"] != "karpenter" && labels["k8s-app"] != "karpenter" && labels["app"] != "karpenter" {
		return ""
	}
	for _, k := range containers {
		if k.Name == "controller" || strings.Contains(k.Image, "karpenter") {
			return k.Image
		}
	}
	return ""
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
