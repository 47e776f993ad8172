package cgroup

import (
	"errors"
	"iter"
	"strconv"
	"strings"
)

// Limit is the content of a limit file: a number of bytes, or of tasks in
// pids.max, or "max" for none.
type Limit struct {
	Bytes uint64 // 0 when Max
	Max   bool
}

// String prints the limit as the kernel does.
func (l Limit) String() string {
	if l.Max {
		return "max"
	}
	return strconv.FormatUint(l.Bytes, 10)
}

func parseLimit(data []byte) (Limit, error) {
	text, err := singleLine(data)
	if err != nil {
		return Limit{}, err
	}
	if text == "max" {
		return Limit{Max: true}, nil
	}
	value, err := kernelUint(text)
	if err != nil {
		return Limit{}, badText(1, text, err.Error())
	}
	return Limit{Bytes: value}, nil
}

func parseValue(data []byte) (uint64, error) {
	text, err := singleLine(data)
	if err != nil {
		return 0, err
	}
	value, err := kernelUint(text)
	if err != nil {
		return 0, badText(1, text, err.Error())
	}
	return value, nil
}

// parseFlag reads a file that holds 0 or 1.
func parseFlag(data []byte) (bool, error) {
	text, err := singleLine(data)
	if err != nil {
		return false, err
	}
	switch text {
	case "0":
		return false, nil
	case "1":
		return true, nil
	}
	return false, badText(1, text, "neither 0 nor 1")
}

// parseWord reads a file of one line of text, such as cgroup.type.
func parseWord(data []byte) (string, error) {
	text, err := singleLine(data)
	if err != nil {
		return "", err
	}
	if len(text) > 4096 || !isPrintable(text) {
		return "", badText(1, text, "not a line of plain text")
	}
	return text, nil
}

func isPrintable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

const reasonEmpty = "file is empty"

var (
	errNegative = errors.New("negative counter")
	errNoNumber = errors.New("not a decimal number")
	errTooLarge = errors.New("number does not fit in 64 bits")
	errZero     = errors.New("0 is not possible here")
)

// kernelUint parses the digits of an unsigned number as the kernel prints it.
func kernelUint(text string) (uint64, error) {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, errNoNumber
	}
	if digits != text {
		return 0, errNegative
	}
	value, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, errTooLarge
	}
	return value, nil
}

// singleLine returns the one line of a file that has to have one.
func singleLine(data []byte) (string, error) {
	text := strings.TrimRight(string(data), "\n")
	if text == "" {
		return "", badText(0, "", reasonEmpty)
	}
	if first, rest, more := strings.Cut(text, "\n"); more {
		next, _, _ := strings.Cut(rest, "\n")
		return "", badText(2, next, "unexpected line after "+strconv.Quote(cut(first)))
	}
	return text, nil
}

// numberedLines yields the lines of a file, counted from 1. Newlines at the
// end make no line, one between others does.
func numberedLines(data []byte) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		text := strings.TrimRight(string(data), "\n")
		if text == "" {
			return
		}
		number := 0
		for line := range strings.SplitSeq(text, "\n") {
			number++
			if !yield(number, line) {
				return
			}
		}
	}
}
