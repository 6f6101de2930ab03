package sim

import (
	"context"
	"strings"
	"time"

	"sip2gate/serialbridge/sip2"
)

// CheckoutOptions are what a Checkout may say beyond patron and item.
type CheckoutOptions struct {
	PIN         string
	FeeAccepted bool      // BO=Y
	Cancel      bool      // BI=Y
	NoBlock     bool      // lent while off line
	Date        time.Time // transaction date; zero means now
	Due         time.Time // nb due date; zero means blank
}

func (k *Kiosk) date(t time.Time) string {
	if t.IsZero() {
		t = k.opts.Clock()
	}
	return t.Format(dateForm)
}

// fields appends identifier and value in turn.
func (k *Kiosk) fields(head string, pairs ...string) []byte {
	b := []byte(head)
	for i := 0; i+1 < len(pairs); i += 2 {
		b = sip2.AppendField(b, pairs[i], []byte(pairs[i+1]), k.opts.Delimiter)
	}
	return b
}

// CheckoutFrame makes an 11 with the next AY, ready to be sent.
func (k *Kiosk) CheckoutFrame(patron, item string, o CheckoutOptions) []byte {
	due := strings.Repeat(" ", len(dateForm))
	if !o.Due.IsZero() {
		due = o.Due.Format(dateForm)
	}
	if k.opts.Short {
		due = ""
	}
	return k.Frame(k.fields("11Y"+yn(o.NoBlock)+k.date(o.Date)+due,
		"AO", k.opts.Institution, "AA", patron, "AB", item, "AC", "", "AD", o.PIN, "BO", yn(o.FeeAccepted), "BI", yn(o.Cancel)))
}

// Checkout sends an 11 and returns the answer.
func (k *Kiosk) Checkout(ctx context.Context, patron, item string, o CheckoutOptions) (sip2.Message, error) {
	answer, err := k.Exchange(ctx, k.CheckoutFrame(patron, item, o))
	if err != nil {
		return sip2.Message{}, err
	}
	return sip2.ParseAnswer(answer, k.opts.Delimiter), nil
}

// Login sends a 93. location is CP and may be empty.
func (k *Kiosk) Login(ctx context.Context, user, password, location string) (sip2.Message, error) {
	return k.ask(ctx, k.fields("9300", "CN", user, "CO", password, "CP", location))
}

// Status sends a 99 and returns the 98.
func (k *Kiosk) Status(ctx context.Context) (sip2.Message, error) {
	return k.ask(ctx, []byte("9900802.00"))
}

// Checkin sends a 09.
func (k *Kiosk) Checkin(ctx context.Context, item string) (sip2.Message, error) {
	now := k.date(time.Time{})
	return k.ask(ctx, k.fields("09N"+now+now, "AP", k.opts.Institution, "AO", k.opts.Institution, "AB", item, "AC", "", "BI", "N"))
}

// Renew sends a 29.
func (k *Kiosk) Renew(ctx context.Context, patron, item string) (sip2.Message, error) {
	due := strings.Repeat(" ", len(dateForm))
	if k.opts.Short {
		due = ""
	}
	return k.ask(ctx, k.fields("29NN"+k.date(time.Time{})+due, "AO", k.opts.Institution, "AA", patron, "AB", item, "AC", "", "BO", "N"))
}

// RenewAll sends a 65.
func (k *Kiosk) RenewAll(ctx context.Context, patron string) (sip2.Message, error) {
	return k.ask(ctx, k.fields("65"+k.date(time.Time{}), "AO", k.opts.Institution, "AA", patron, "AC", ""))
}

// PatronStatus sends a 23.
func (k *Kiosk) PatronStatus(ctx context.Context, patron, pin string) (sip2.Message, error) {
	return k.ask(ctx, k.fields("23001"+k.date(time.Time{}), "AO", k.opts.Institution, "AA", patron, "AC", "", "AD", pin))
}

// PatronInformation sends a 63 that asks for the charged items, all of them.
func (k *Kiosk) PatronInformation(ctx context.Context, patron, pin string) (sip2.Message, error) {
	return k.ask(ctx, k.fields("63001"+k.date(time.Time{})+"  Y       ",
		"AO", k.opts.Institution, "AA", patron, "AC", "", "AD", pin))
}

// ItemInformation sends a 17.
func (k *Kiosk) ItemInformation(ctx context.Context, item string) (sip2.Message, error) {
	return k.ask(ctx, k.fields("17"+k.date(time.Time{}), "AO", k.opts.Institution, "AB", item, "AC", ""))
}

// FeePaid sends a 37 of amount euros, as 1.50, with transaction id BK.
func (k *Kiosk) FeePaid(ctx context.Context, patron, amount, transaction string) (sip2.Message, error) {
	return k.ask(ctx, k.fields("37"+k.date(time.Time{})+"0100EUR",
		"BV", amount, "AO", k.opts.Institution, "AA", patron, "AC", "", "BK", transaction))
}

// EndSession sends a 35.
func (k *Kiosk) EndSession(ctx context.Context, patron string) (sip2.Message, error) {
	return k.ask(ctx, k.fields("35"+k.date(time.Time{}), "AO", k.opts.Institution, "AA", patron, "AC", ""))
}

// Resend sends a 97: the last answer again, please.
func (k *Kiosk) Resend(ctx context.Context) (sip2.Message, error) { return k.ask(ctx, []byte("97")) }
