package nemesis

import (
	"strings"
	"testing"
	"time"
)

func TestWriteReport(t *testing.T) {
	t.Parallel()
	r := kept()
	r.undeliver("ann/2", "m3")
	kill := r.Faults[0].Fault
	var got strings.Builder
	err := WriteReport(&got, Report{
		Seed:       7,
		Begun:      at(0),
		Ended:      at(20),
		Record:     r,
		Violations: Check(r),
		Timetable:  Timetable{kill, {Kind: Clock, Target: "widget-api", At: time.Second, For: time.Second, Arg: -500}},
		Shrunk:     Timetable{kill},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Nemesis, seed 7\n\nFrom 2026-11-21T12:00:00Z, 20s. 1 faults, 1 broken promises.\n",
		"| accepted | 5 | 0.2 |\n| refused | 1 | 0.1 |\n| without an answer | 1 | 0.1 |\n",
		"| messages | 5 | 0s | 0s | 0s |\n| answers | 2 | 1s | 1s | 1s |\n| during kill | 1 | 0s | 0s | 0s |\n",
		"12:00:08.000 to 12:00:09.000  0s kill gateway-1 for 1s\n",
		"1s clock widget-api for 1s with -500\n",
		"the following are enough:\n\n```\n0s kill gateway-1 for 1s\n```\n",
		"| delivered-once | A client receives a message once in a session, unless it has loaded it. | 0 |\n",
		`
### accepted-delivered

Chat chat-1, message m3: ann/2 has neither loaded nor received it since it connected at 12:00:06.000.

`,
		`
12:00:06.000 agent ada begins to write "w3.", key k3, has seen []
12:00:06.000 ann/2 connects: recovered false, gone false, loaded 3 messages, this one false
12:00:07.000 agent ada is answered 503 
12:00:08.000 agent ada begins to write "w3.", key k3, has seen []
12:00:08.000 fault: kill gateway-1, until 12:00:09.000
12:00:09.000 agent ada is answered 201 m3
12:00:09.000 ann/1 receives it: "w3."
`,
		`at the end history (whole true, owner "ann", 5 messages): place 4, agent "w3." of ; before it m2 "w2." of `,
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("want %q", want)
		}
	}
	if t.Failed() {
		t.Log(got.String())
	}
}

func TestReportOfAModel(t *testing.T) {
	t.Parallel()
	r := kept()
	r.ofModel()
	var got strings.Builder
	if err := WriteReport(&got, Report{Record: r}); err != nil {
		t.Fatal(err)
	}
	want := "\nThe model wrote 3 answers, 1 questions got the failure text. Clients put 2 messages together.\n"
	if !strings.Contains(got.String(), want) {
		t.Errorf("want %q in\n%s", want, got.String())
	}
}
