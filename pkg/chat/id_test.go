package chat

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

// A visitor who answers within the millisecond of the question is shown after the answers to the question.
func TestDerivedIDsSortByTime(t *testing.T) {
	t.Parallel()
	const maxAnswers = 11 // ten, and the text after a failure
	for name, ids := range map[string][2]string{
		"a quarter of a microsecond for each answer": {"01980a4e-7b1c-7c3e-bfff-ffffffffffff", "01980a4e-7b1c-7c4a-8000-000000000000"},
		"at the end of a millisecond":                {"01980a4e-7b1c-7ffd-bfff-ffffffffffff", "01980a4e-7b1d-7009-8000-000000000000"},
	} {
		sorted := []string{ids[0]}
		for n := range maxAnswers {
			sorted = append(sorted, AnswerID(ids[0], n))
		}
		sorted = append(sorted, ids[1])
		if !slices.IsSorted(sorted) || len(slices.Compact(slices.Clone(sorted))) != len(sorted) {
			t.Errorf("%s: got %v, want the question, its answers, the next question", name, sorted)
		}
	}
	at := time.UnixMilli(0x01980a4e7b1c)
	if id := NoticeID(at, "e"); id <= AnswerID("01980a4e-7b1c-7c3e-bfff-ffffffffffff", maxAnswers) || id >= "01980a4e-7b1d" {
		t.Errorf("got %s, want the notice after the answers of its millisecond", id)
	}
}

func TestDerivedIDs(t *testing.T) {
	t.Parallel()
	const question, other = "01980a4e-7b1c-7c3e-9a55-3f2d8c1b7a60", "01980a4e-7b1c-7c3e-9a55-3f2d8c1b7a61"
	at := time.UnixMilli(0x01980a4e7b1c)
	derive := func() []string {
		return []string{AnswerID(question, 0), AnswerID(question, 1), AnswerID(other, 0), NoticeID(at, "a"), NoticeID(at, "b")}
	}
	ids := derive()
	if again := derive(); !slices.Equal(ids, again) {
		t.Errorf("got %v, then %v, want the same", ids, again)
	}
	for i, id := range ids {
		parsed, err := uuid.Parse(id)
		if err != nil || parsed.Version() != 7 || parsed.Variant() != uuid.RFC4122 || slices.Contains(ids[:i], id) {
			t.Errorf("got %s, want a UUIDv7 of its own", id)
		}
		if created, ok := IDTime(id); !ok || !created.Equal(at) {
			t.Errorf("got %s of %s, want the time of the question or event", id, created)
		}
	}
}
