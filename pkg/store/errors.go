package store

import "github.com/parley-chat/parley/pkg/apperr"

// RecordNotFound is returned when no idempotency record has the id. No caller of an API receives it.
func RecordNotFound() error {
	return apperr.New(apperr.NotFound, "RECORD_NOT_FOUND", "Record not found")
}

// CursorNotInChat is returned when the cursor of a history is not a message of the chat; it does not reveal
// whether the message exists in another one.
func CursorNotInChat() error {
	var f apperr.Fields
	f.Add("before", "must be the id of a message of the chat")
	return f.Err()
}
