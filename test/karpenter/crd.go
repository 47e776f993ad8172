package main

import (
	"encoding/json"
	"errors"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"

	"sigs.k8s.io/karpenter/pkg/apis"
)

// crd is the schema of NodePools that Karpenter ships.
type crd struct{ schema *structuralschema.Structural }

func nodePoolCRD() (*crd, error) {
	for _, definition := range apis.CRDs {
		if definition.Spec.Names.Kind != "NodePool" {
			continue
		}
		for _, version := range definition.Spec.Versions {
			if version.Name != "v1" {
				continue
			}
			internal := &apiextensions.JSONSchemaProps{}
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, internal, nil); err != nil {
				return nil, err
			}
			schema, err := structuralschema.NewStructural(internal)
			return &crd{schema}, err
		}
	}
	return nil, errors.New("karpenter ships no NodePool v1")
}

// defaulted returns the object as the API server would store it.
func (c *crd) defaulted(raw json.RawMessage) (json.RawMessage, error) {
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	defaulting.Default(object, c.schema)
	return json.Marshal(object)
}
