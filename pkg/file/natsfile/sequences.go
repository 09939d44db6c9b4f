package natsfile

import (
	"fmt"
	"strconv"
	"strings"
)

// sequences encodes the stream sequences of an object's chunks as text: the first one, then the difference to the
// previous one, in base 36 and separated by dots. Two characters a chunk without concurrent uploads, rarely more than
// three.
type sequences struct {
	text  strings.Builder
	last  uint64
	count int
}

func (s *sequences) add(sequence uint64) {
	if s.count > 0 {
		s.text.WriteByte('.')
	}
	s.text.WriteString(strconv.FormatUint(sequence-s.last, 36))
	s.last = sequence
	s.count++
}

func (s *sequences) String() string { return s.text.String() }

func parseSequences(text string) ([]uint64, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, ".")
	list, last := make([]uint64, len(parts)), uint64(0)
	for i, part := range parts {
		distance, err := strconv.ParseUint(part, 36, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the chunks of a file: %w", err)
		}
		last += distance
		list[i] = last
	}
	return list, nil
}
