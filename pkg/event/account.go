package event

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
)

// Account names the budgets that pay for an event. A bus charges every event that it publishes to an account,
// so that no company, application, visitor, agent or address fills the streams that all of them share;
// pkg/budget has the table of accounts and budgets.
//
// The zero Account pays for nothing: publishing with it fails.
type Account struct {
	Payer      Payer
	CompanyID  string
	AppID      string
	ChatUserID string
	UserID     string // an agent, a user of the panel
	Address    string // of the visitor's client
	Prepaid    int    // bytes that have been charged already
}

// Payer is the kind of an account.
type Payer int

const (
	noPayer      Payer = iota
	PayerCompany       // a system of the company
	PayerVisitor       // a visitor of an application, at an address
	PayerAgent         // an agent, or a tool of the operator
	PayerBot           // the bot of an application, for a visitor
	PayerNobody        // the event follows from one that has been charged
)

// ForCompany returns the account of a company's systems.
func ForCompany(companyID string) Account { return Account{Payer: PayerCompany, CompanyID: companyID} }

// ForVisitor returns the account of a visitor. chatUserID is empty before the visitor is registered.
func ForVisitor(companyID, appID, chatUserID, address string) Account {
	return Account{Payer: PayerVisitor, CompanyID: companyID, AppID: appID, ChatUserID: chatUserID, Address: address}
}

// ForAgent returns the account of a company's agent. userID is empty for a tool of the operator.
func ForAgent(companyID, userID string) Account {
	return Account{Payer: PayerAgent, CompanyID: companyID, UserID: userID}
}

// ForBot returns the account of an application's bot that answers a visitor.
func ForBot(companyID, appID, chatUserID string) Account {
	return Account{Payer: PayerBot, CompanyID: companyID, AppID: appID, ChatUserID: chatUserID}
}

// Derived returns the account of an event that follows from one that has been charged: the dispatch of a company's
// message, a notice about a change of control, a status, a part of an answer. [ChargedBytes] has what it costs.
func Derived() Account { return Account{Payer: PayerNobody} }

const (
	// reportBytes is what the delivered and the read report of a message take in STATUS, less the headers of one event.
	reportBytes = 800
	// visitorMessageBytes is what a visitor's message costs at least, less the headers of one event: it also takes room
	// among the events that wait for the bot, see pkg/bus.
	visitorMessageBytes = 1536
	// noticeBytes is what the notice about a change of control takes in REPLIES, without headers.
	noticeBytes = 1024
)

// ChargedBytes returns what an event with a payload of that many bytes costs: the most that it, or what is derived
// from it, takes in one stream. A budget thus bounds what its owner has in any of them.
func ChargedBytes(e Event, payload int) int {
	switch e := e.(type) {
	case CompanyMessageAccepted, PushAccepted, OutboundMessage:
		return max(payload, reportBytes)
	case Reply:
		if e.Receipt {
			return max(payload, reportBytes)
		}
	case VisitorMessageAccepted:
		return max(payload, visitorMessageBytes)
	case ChatControlChanged:
		return max(payload, noticeBytes)
	}
	return payload
}

// Valid reports whether a has a payer.
func (a Account) Valid() bool { return a.Payer != noPayer }

// siteBits is the length of an IPv6 site's prefix, the usual assignment of a provider to a customer (RFC 6177).
const siteBits = 48

// SiteOf returns the network of a single customer: an IPv4 address, or the first 48 bits of an IPv6 address. Clients'
// IPv6 addresses are networks of 64 bits, and one customer has up to 65,536 of them. Other texts are returned unchanged.
func SiteOf(address string) string {
	network, err := netip.ParsePrefix(address)
	if err != nil || network.Addr().Is4() {
		return address
	}
	wider, err := network.Addr().Prefix(siteBits)
	if err != nil {
		return address
	}
	return wider.String()
}

const siteGroupDigits = 4

// SiteGroup returns the group of a site among 65,536, in hexadecimal digits: enough to keep networks apart that share
// an application, and too little to tell whose it is. An unknown address has none.
func SiteGroup(address string) string {
	if address == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(SiteOf(address)))
	return hex.EncodeToString(sum[:siteGroupDigits/2])
}
