package karpenter

import (
	"encoding/json"
	"time"
)

// NillableDuration is a duration that can be switched off with "Never". Its zero value is an absent field, which Karpenter
// treats as it treats Never; Text keeps the two apart.
type NillableDuration struct {
	Duration time.Duration
	Set      bool   // false: Never, or absent
	Text     string // as written; "" when absent
}

// IsNever reports whether the field says Never in so many words.
func (d NillableDuration) IsNever() bool { return d.Text == never }

const never = "Never"

// UnmarshalJSON reads "Never" or a Go duration (pkg/apis/v1/duration.go).
func (d *NillableDuration) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	if text == never {
		*d = NillableDuration{Text: text}
		return nil
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	*d = NillableDuration{Duration: duration, Set: true, Text: text}
	return nil
}

// MarshalJSON writes the text that was read.
func (d NillableDuration) MarshalJSON() ([]byte, error) {
	switch {
	case d.Text != "":
		return json.Marshal(d.Text)
	case d.Set:
		return json.Marshal(d.Duration.String())
	}
	return json.Marshal(never)
}
