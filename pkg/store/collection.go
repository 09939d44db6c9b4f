package store

// collection names a MongoDB collection; the _id of each is what its look-ups know.
type collection string

const (
	companies    collection = "companies"     // companyId
	accessTokens collection = "access_tokens" // hex SHA-256 of the secret
	applications collection = "applications"  // appId
	templates    collection = "templates"     // templateId
	visitors     collection = "visitors"      // chatUserId
	identities   collection = "identities"    // {scope}|{kind}|{value}, {scope}|proved-{kind}|{value}
	chats        collection = "chats"         // chatId
	messages     collection = "messages"      // message id: in which bucket of which chat the message is
	buckets      collection = "buckets"       // {chatId}:{n}: the messages themselves
	statuses     collection = "statuses"      // {companyId}|{messageId}: what became of a message that the company sent
	receipts     collection = "receipts"      // chatId: whose delivery and reading is awaited, how far the visitor has read
	claims       collection = "claims"        // hash of an Idempotency-Key and whose it is
)
