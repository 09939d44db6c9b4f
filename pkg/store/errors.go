package store

import "github.com/parley-chat/parley/pkg/apperr"

// CompanyNotFound is returned when no company has the id.
func CompanyNotFound() error {
	return apperr.New(apperr.NotFound, "COMPANY_NOT_FOUND", "Company not found")
}

// AccessTokenNotFound is returned when no token has the hash.
func AccessTokenNotFound() error {
	return apperr.New(apperr.NotFound, "ACCESS_TOKEN_NOT_FOUND", "Access token not found")
}

// ApplicationNotFound is returned when no application has the id.
func ApplicationNotFound() error {
	return apperr.New(apperr.NotFound, "APPLICATION_NOT_FOUND", "Chat application not found")
}

// TemplateNotFound is returned when no template has the id.
func TemplateNotFound() error {
	return apperr.New(apperr.NotFound, "TEMPLATE_NOT_FOUND", "Template not found")
}

// VisitorNotFound is returned when no visitor has the id or the identity.
func VisitorNotFound() error {
	return apperr.New(apperr.NotFound, "VISITOR_NOT_FOUND", "Visitor not found")
}

// ChatNotFound is returned when no chat has the id.
func ChatNotFound() error {
	return apperr.New(apperr.NotFound, "CHAT_NOT_FOUND", "Chat not found")
}

// MessageNotFound is returned if no message has the id, possibly not yet.
func MessageNotFound() error {
	return apperr.New(apperr.NotFound, "MESSAGE_NOT_FOUND", "Message not found")
}

// RecordNotFound is returned when no idempotency record has the id.
func RecordNotFound() error {
	return apperr.New(apperr.NotFound, "NOT_FOUND", "Not found")
}

// AccessTokenExists is returned when a token with the hash exists already.
func AccessTokenExists() error {
	return apperr.New(apperr.Conflict, "ACCESS_TOKEN_EXISTS", "The access token exists already")
}

// MessageInOtherChat is returned when a message with this id is in another chat.
func MessageInOtherChat() error {
	return apperr.New(apperr.Invalid, "MESSAGE_EXISTS", "A message with this id is in another chat")
}

// CursorNotInChat is returned when the cursor of a history is not a message of the chat; it does not reveal whether the message exists
// in another one.
func CursorNotInChat() error {
	var f apperr.Fields
	f.Add("before", "must be the id of a message of the chat")
	return f.Err()
}

// UserNotFound is returned when no user has the id.
func UserNotFound() error { return apperr.New(apperr.NotFound, "USER_NOT_FOUND", "User not found") }

// EmailTaken is returned when a user with the e-mail address exists already.
func EmailTaken() error {
	return apperr.New(apperr.Conflict, "EMAIL_TAKEN", "A user with this e-mail address exists already")
}

// ChangedMeanwhile is returned for a record that has changed since it was read.
func ChangedMeanwhile() error {
	return apperr.New(apperr.Conflict, "CHANGED_MEANWHILE", "Somebody else has changed this meanwhile")
}

// SessionNotFound is returned when no session has the id.
func SessionNotFound() error {
	return apperr.New(apperr.NotFound, "SESSION_NOT_FOUND", "Session not found")
}

// WebhookEndpointNotFound is returned when no endpoint has the id.
func WebhookEndpointNotFound() error {
	return apperr.New(apperr.NotFound, "WEBHOOK_ENDPOINT_NOT_FOUND", "Webhook endpoint not found")
}

// WebhookDeliveryNotFound is returned if no delivery has the id, or it has expired.
func WebhookDeliveryNotFound() error {
	return apperr.New(apperr.NotFound, "WEBHOOK_DELIVERY_NOT_FOUND", "Webhook delivery not found")
}
