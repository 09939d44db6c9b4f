// The part of the AsyncAPI document on Socket.IO: the events between the Socket gateway and a visitor's browser.
package main

import "github.com/parley-chat/parley/proto-events/subject"

// delivery describes the payload of the socket event: the record and the id of its chat.
func delivery() member {
	return member{"Delivery", object{
		{"description", "The message record, with its chat."},
		{"allOf", []object{ref("components/schemas/Message"), {
			{"type", "object"},
			{"properties", object{{"chatId", object{{"type", "string"}}}}},
			{"required", []string{"id", "createdAt", "type", "data", "nameOfSender", "isFromSupport", "chatId"}},
		}}},
	}}
}

func socketChannel() member {
	return member{"visitorSocket", object{
		{"address", "/message"},
		{
			"description",
			"The visitor's namespace; auth.token in the CONNECT packet identifies the visitor. Each event of " +
				"the channel is a Socket.IO event of the same name.",
		},
		{"servers", []object{ref("servers/widget")}},
		{"messages", object{
			{"message", ref("components/messages/message")},
			{"message.part", ref("components/messages/message.part")},
			{"token", ref("components/messages/token")},
			{"token_expiring", ref("components/messages/token_expiring")},
			{"typing", ref("components/messages/typing")},
			{"read", ref("components/messages/read")},
			{"unread", ref("components/messages/unread")},
		}},
	}}
}

func socketOperations() object {
	one := func(action, summary, message string) object {
		return object{
			{"action", action}, {"channel", ref("channels/visitorSocket")}, {"summary", summary},
			{"messages", []object{ref("channels/visitorSocket/messages/" + message)}},
		}
	}
	renewal := one("receive", "A fresh token of the same visitor renews the session in place.", "token")
	renewal = append(renewal, member{"reply", object{
		{"channel", ref("channels/visitorSocket")},
	}})
	return object{
		{
			"deliverMessage",
			one("send", "A reply reaches every socket of the visitor once, in the order of the stream.", "message"),
		},
		{
			"deliverPart",
			one("send", "A part of a message that a bot is still writing. A socket that connects in the "+
				"meantime gets the text so far as one part.", "message.part"),
		},
		{"warnOfExpiry", one("send", "A minute before the socket's token expires.", "token_expiring")},
		{"renewToken", renewal},
		{
			"showTyping",
			one("send", "The other side is typing: shown for six seconds, or until its next message. Never "+
				"replayed.", "typing"),
		},
		{
			"sayTyping",
			one("receive", "The visitor is typing. At most one event in two seconds is processed; acknowledged "+
				"with {ok: true} or {ok: false, code, message}.", "typing"),
		},
		{
			"showRead",
			one("send", "A read cursor moved: the company's, or the visitor's on another device. Never "+
				"replayed.", "read"),
		},
		{
			"sayRead",
			one("receive", "The visitor has read everything up to a message; acknowledged with {ok: true, "+
				"unread} once stored, else {ok: false, code, message}.", "read"),
		},
		{"tellUnread", one("send", "After connecting, if auth.unread was true.", "unread")},
	}
}

func socketMessages() object {
	return object{
		{"message", object{
			{"name", "message"},
			{
				"summary",
				"A message for the visitor. The last argument, which clients store by themselves, is the " +
					"offset for connection state recovery.",
			},
			{"payload", ref("components/schemas/Delivery")},
		}},
		{"message.part", object{
			{"name", "message.part"},
			{
				"summary",
				"A part of a message that a bot is still writing, without the members companyId, appId and " +
					"chatUserId. It carries no offset for connection state recovery.",
			},
			{"payload", ref("components/schemas/MessagePart")},
		}},
		{"token", object{
			{"name", "token"}, {"summary", "The token; acknowledged with {ok: true} or {ok: false, code, message}."},
			{
				"payload",
				object{{"type", "string"}, {"description", "A visitor token, as POST /register returns it."}},
			},
		}},
		{"typing", object{
			{"name", "typing"}, {"summary", "Typing indicator. A visitor sends it without arguments."},
			{"payload", object{{"type", "object"}, {"properties", object{
				{"name", object{{"type", "string"}, {"description", "Name of the writer; may be absent."}}},
				{
					"at",
					object{
						{"type", "string"},
						{"format", "date-time"},
						{
							"description",
							"Ignore the event unless this is later than the newest message of the other side.",
						},
					},
				},
			}}}},
		}},
		{"read", object{
			{"name", "read"}, {"summary", "A read cursor. A visitor sends messageId alone."},
			{"payload", object{{"type", "object"}, {"properties", object{
				{"chatId", object{{"type", "string"}}},
				{"side", object{{"type", "string"}, {"enum", []string{subject.SideVisitor, subject.SideSupport}}}},
				{
					"messageId",
					object{
						{"type", "string"},
						{"description", "The newest message read; may be absent if side is support."},
					},
				},
				{
					"upTo",
					object{
						{"type", "string"},
						{"format", "date-time"},
						{"description", "Messages created up to then are read."},
					},
				},
			}}}},
		}},
		{"unread", object{
			{"name", "unread"}, {"summary", "Unread count and read cursors of the chat."},
			{"payload", object{{"type", "object"}, {"properties", object{
				{
					"unread",
					object{
						{"type", "integer"},
						{"description", "Messages of the other side after the visitor's cursor, at most 100."},
					},
				},
				{"readUpTo", object{{"type", "string"}, {"description", "The visitor's cursor: id of a message."}}},
				{
					"seenUpTo",
					object{
						{"type", "string"},
						{"format", "date-time"},
						{"description", "The company has read the visitor's messages up to this time."},
					},
				},
			}}}},
		}},
		{"token_expiring", object{
			{"name", "token_expiring"}, {"summary", "The socket will be disconnected when its token expires."},
			{"payload", object{{"type", "null"}}},
		}},
	}
}
