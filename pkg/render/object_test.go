package render

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// metav1Object lets cli-runtime print a report.
type metav1Object struct{ report.Report }

func (metav1Object) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (o metav1Object) DeepCopyObject() runtime.Object { return o }
