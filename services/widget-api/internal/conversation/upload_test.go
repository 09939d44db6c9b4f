package conversation_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/attachment"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/services/widget-api/internal/conversation"
)

// fakeFiles is a file store that counts its files.
type fakeFiles struct {
	fail error
	kept int
}

func (c *fakeFiles) Keep(_ context.Context, app chat.Application, in attachment.Incoming) (file.Kept, error) {
	if c.fail != nil {
		return file.Kept{}, c.fail
	}
	c.kept++
	return file.Kept{File: file.File{AppID: app.ID, Name: in.Name, Size: 1}, Kind: file.Kind{Type: chat.Image, Mime: "image/png"}}, nil
}

func (c *fakeFiles) Discard(context.Context, file.Kept) { c.kept-- }

// arriving is a form with configurable faults.
type arriving struct {
	file, rest error
	read       bool
}

func (a *arriving) File() (attachment.Incoming, error) {
	a.read = true
	return attachment.Incoming{Name: "a.png", Content: strings.NewReader("x")}, a.file
}

func (a *arriving) Rest() (string, error) { return "caption", a.rest }

func receive(t *testing.T, c *fakeFiles, f *arriving, who credential.VisitorClaims) (conversation.Upload, error) {
	t.Helper()
	s := &surroundings{}
	service := conversation.New(conversation.Config{Applications: s, Directory: s, Chats: s, Replies: s, Publisher: s})
	return service.Receive(t.Context(), who, payer, c, f, "https://chat.example.com")
}

func TestReceive(t *testing.T) {
	t.Parallel()
	c := new(fakeFiles)
	u, err := receive(t, c, &arriving{}, claims)
	if err != nil || c.kept != 1 || u.Draft.Type != chat.Image || u.Caption != "caption" || u.File.AppID != "app" {
		t.Errorf("got %+v, %v with %d files kept, want the picture", u, err, c.kept)
	}
	if faults := chat.ValidateData(u.Draft.Type, u.Draft.Data); len(faults) > 0 || !strings.Contains(string(u.Draft.Data), `"caption":"caption"`) {
		t.Errorf("got the data %s with %v, want them valid", u.Draft.Data, faults)
	}
}

// A failed upload leaves no file, and nothing is read for an unknown visitor.
func TestFailedReceiveKeepsNothing(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		fakeFiles
		arriving
	}{
		"before the file":    {arriving: arriving{file: broken}},
		"while storing":      {fakeFiles: fakeFiles{fail: broken}},
		"after the file":     {arriving: arriving{rest: broken}},
		"in all of the form": {arriving: arriving{file: broken, rest: broken}},
	} {
		if _, err := receive(t, &test.fakeFiles, &test.arriving, claims); !errors.Is(err, broken) || test.kept != 0 {
			t.Errorf("%s: got %v with %d files kept, want the error and none", name, err, test.kept)
		}
	}
	form, other := new(arriving), credential.VisitorClaims{ChatUserID: "visitor", AppID: "another", CompanyID: "company"}
	if _, err := receive(t, new(fakeFiles), form, other); !apperr.Is(err, apperr.Unauthenticated) || form.read {
		t.Errorf("got %v, read %v, want Unauthenticated before anything is read", err, form.read)
	}
}
