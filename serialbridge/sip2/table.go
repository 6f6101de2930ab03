package sip2

// FixedField is one field of a message's fixed part: it has no identifier, only
// a place and a length.
type FixedField struct {
	Name string // "transaction_date"; unique within a message
	Len  int    // in bytes
	What string // its values, for people
}

// kind is what SIP2 2.00 says of one message.
type kind struct {
	name   string
	answer Code // the response; zero for responses, 96 and 97
	fixed  []FixedField
}

const (
	whatDate  = "YYYYMMDD, zone (4 blanks: local time), HHMMSS"
	whatYN    = "Y or N"
	whatYNU   = "Y, N or U (unknown)"
	whatOK    = "1 done, 0 not done"
	whatCount = "0000 to 9999, or blanks: not supported"
)

var (
	transactionDate = FixedField{"transaction_date", 18, whatDate}
	nbDueDate       = FixedField{"nb_due_date", 18, "due date given off line; blank otherwise"}
	okDigit         = FixedField{"ok", 1, whatOK}
	noBlock         = FixedField{"no_block", 1, "Y: already done off line, to be recorded; N: ask first"}
	language        = FixedField{"language", 3, "000 unknown, 001 English, other languages by number"}
	magneticMedia   = FixedField{"magnetic_media", 1, whatYNU}
	feeType         = FixedField{"fee_type", 2, "01 other, 02 administrative, 03 damage, 04 overdue, 05 processing, 06 rental, 07 replacement, 08 computer access, 09 hold"}
	patronStatus    = FixedField{"patron_status", 14, "one Y or blank for each: charge, renewal, recall, hold denied; card lost; too many charged, overdue, renewals, claims returned, lost; fines, fees; recall overdue; too many billed"}
	protocolVersion = FixedField{"protocol_version", 4, "2.00"}
)

var (
	loanFixed = []FixedField{
		okDigit,
		{"renewal_ok", 1, "Y: the patron had the item already"},
		magneticMedia,
		{"desensitize", 1, "Y: switch the security strip off"},
		transactionDate,
	}
	patronFixed = []FixedField{patronStatus, language, transactionDate}
	dateFixed   = []FixedField{transactionDate}
)

// kinds holds every message of SIP2 2.00 at the index of its code. It is never
// written to.
var kinds = [100]*kind{
	1: {"Block Patron", CodePatronStatusResponse, []FixedField{
		{"card_retained", 1, whatYN}, transactionDate}},
	9: {"Checkin", CodeCheckinResponse, []FixedField{
		noBlock, transactionDate, {"return_date", 18, whatDate}}},
	10: {"Checkin Response", Code{}, []FixedField{
		okDigit, {"resensitize", 1, "Y: switch the security strip on"}, magneticMedia,
		{"alert", 1, "Y: sound the alarm, staff must look at the item"}, transactionDate}},
	11: {"Checkout", CodeCheckoutResponse, []FixedField{
		{"sc_renewal_policy", 1, "Y: the station may renew"}, noBlock, transactionDate, nbDueDate}},
	12: {"Checkout Response", Code{}, loanFixed},
	15: {"Hold", CodeHoldResponse, []FixedField{
		{"hold_mode", 1, "+ add, - delete, * change"}, transactionDate}},
	16: {"Hold Response", Code{}, []FixedField{
		okDigit, {"available", 1, whatYN}, transactionDate}},
	17: {"Item Information", CodeItemInformationResponse, dateFixed},
	18: {"Item Information Response", Code{}, []FixedField{
		{"circulation_status", 2, "01 other, 02 on order, 03 available, 04 charged, 05 charged (not recallable yet), 06 in process, 07 recalled, 08 on hold shelf, 09 to be reshelved, 10 in transit, 11 claimed returned, 12 lost, 13 missing"},
		{"security_marker", 2, "00 other, 01 none, 02 Tattle-Tape, 03 Whisper Tape"},
		feeType, transactionDate}},
	19: {"Item Status Update", CodeItemStatusUpdateResponse, dateFixed},
	20: {"Item Status Update Response", Code{}, []FixedField{
		{"item_properties_ok", 1, "1: stored"}, transactionDate}},
	23: {"Patron Status Request", CodePatronStatusResponse, []FixedField{language, transactionDate}},
	24: {"Patron Status Response", Code{}, patronFixed},
	25: {"Patron Enable", CodePatronEnableResponse, dateFixed},
	26: {"Patron Enable Response", Code{}, patronFixed},
	29: {"Renew", CodeRenewResponse, []FixedField{
		{"third_party_allowed", 1, whatYN}, noBlock, transactionDate, nbDueDate}},
	30: {"Renew Response", Code{}, loanFixed},
	35: {"End Patron Session", CodeEndSessionResponse, dateFixed},
	36: {"End Session Response", Code{}, []FixedField{
		{"end_session", 1, whatYN}, transactionDate}},
	37: {"Fee Paid", CodeFeePaidResponse, []FixedField{
		transactionDate, feeType,
		{"payment_type", 2, "00 cash, 01 VISA, 02 credit card"},
		{"currency_type", 3, "ISO 4217: EUR, USD"}}},
	38: {"Fee Paid Response", Code{}, []FixedField{
		{"payment_accepted", 1, whatYN}, transactionDate}},
	63: {"Patron Information", CodePatronInformationResponse, []FixedField{
		language, transactionDate,
		{"summary", 10, "one Y at most: hold, overdue, charged, fine, recall items, unavailable holds"}}},
	64: {"Patron Information Response", Code{}, []FixedField{
		patronStatus, language, transactionDate,
		{"hold_items_count", 4, whatCount},
		{"overdue_items_count", 4, whatCount},
		{"charged_items_count", 4, whatCount},
		{"fine_items_count", 4, whatCount},
		{"recall_items_count", 4, whatCount},
		{"unavailable_holds_count", 4, whatCount}}},
	65: {"Renew All", CodeRenewAllResponse, dateFixed},
	66: {"Renew All Response", Code{}, []FixedField{
		okDigit, {"renewed_count", 4, whatCount}, {"unrenewed_count", 4, whatCount}, transactionDate}},
	93: {"Login", CodeLoginResponse, []FixedField{
		{"uid_algorithm", 1, "0: user id in plain text"},
		{"pwd_algorithm", 1, "0: password in plain text"}}},
	94: {"Login Response", Code{}, []FixedField{{"ok", 1, "1 accepted, anything else refused"}}},
	96: {"Request SC Resend", Code{}, nil},
	97: {"Request ACS Resend", Code{}, nil},
	98: {"ACS Status", Code{}, []FixedField{
		{"online_status", 1, whatYN},
		{"checkin_ok", 1, whatYN},
		{"checkout_ok", 1, whatYN},
		{"acs_renewal_policy", 1, whatYN},
		{"status_update_ok", 1, whatYN},
		{"offline_ok", 1, "Y: the station may store and forward"},
		{"timeout_period", 3, "tenths of a second; 000 not on line, 999 unknown"},
		{"retries_allowed", 3, "999 unknown"},
		{"date_time_sync", 18, whatDate},
		protocolVersion}},
	99: {"SC Status", CodeACSStatus, []FixedField{
		{"status_code", 1, "0 all right, 1 printer out of paper, 2 about to shut down"},
		{"max_print_width", 3, "characters a line"},
		protocolVersion}},
}
