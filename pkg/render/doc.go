// Package render turns a report into text, JSON, YAML or whatever a JSONPath
// template picks. It decides nothing and reads nothing but the report: what a
// report does not say, no output says.
//
// Much of a report was read from nodes and API objects, so every output is
// safe to show on a terminal: no control, bidirectional or invisible
// formatting character leaves this package as itself.
package render
