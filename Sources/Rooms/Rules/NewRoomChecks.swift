package import Support

/// The characters that text for people, such as titles, must not contain. Pure; any thread.
///
/// These are control characters, line separators, bidi controls and invisible characters (Unicode's Default_Ignorable_Code_Point). Those that writing
/// needs are allowed: joiners (Persian, Indic scripts, emoji), variation selectors, and tags (flags). They do no harm in text that serves no look-up.
package enum PlainText {
    package static let refused: [ClosedRange<UInt32>] = [
        0...0x1F, 0x7F...0x9F, 0xAD...0xAD, 0x34F...0x34F, 0x61C...0x61C, 0x115F...0x1160, 0x17B4...0x17B5, 0x200B...0x200B,
        0x200E...0x200F,
        0x2028...0x202E, 0x2060...0x206F, 0x3164...0x3164, 0xFEFF...0xFEFF, 0xFFA0...0xFFA0, 0xFFF0...0xFFFB, 0x1BCA0...0x1BCA3,
        0x1D173...0x1D17A, 0xE0000...0xE001F, 0xE0080...0xE00FF, 0xE01F0...0xE0FFF,
    ]

    package static func isPlain(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            (0x20..<0x7F).contains(scalar.value) || !self.refused.contains { $0.contains(scalar.value) }
        }
    }
}

/// Limits on callers' input about rooms. Lengths are in Unicode code points, as JSON Schema counts them.
package enum RoomLimits {
    package static let titleLength = 200
    package static let nickLength = 100
    package static let tokenNameLength = 64
    package static let searchLength = 200
    /// The limit for app and name each, in calls. RTMP allows 256 bytes each, so a call may name a stream that cannot exist.
    package static let streamNameLength = 255
    package static let customBytes = 4_096
    static let customDepth = 32
    static let slots = 1...8
    package static let members = 10_000
    package static let likes = 1...100
    package static let tokens = 1_000

    /// Throws for text that may not be the name of an app, a stream, a token or a key.
    package static func checkName(_ text: String, _ field: String, longest: Int) throws(FieldError) {
        guard (1...longest).contains(text.unicodeScalars.count), self.isPlain(text) else {
            throw FieldError(field, text, "expected 1 to \(longest) characters, and no control or invisible characters")
        }
        try NameForm.check(text, field)
    }

    static func checkTitle(_ title: String) throws(FieldError) {
        guard title.unicodeScalars.count <= self.titleLength, self.isPlain(title) else {
            throw FieldError("title", title, "expected at most \(self.titleLength) characters, and no control or invisible characters")
        }
    }

    static func checkCustom(_ custom: String) throws(FieldError) {
        guard custom.utf8.count <= self.customBytes, JSONParser.isObject(custom, deepest: self.customDepth) else {
            throw FieldError(
                "custom", custom, "expected a JSON object of at most \(self.customBytes) bytes, nested at most \(self.customDepth) levels")
        }
    }

    package static func checkID(_ text: String, _ field: String) throws(FieldError) {
        guard RoomID.isID(text) else { throw FieldError(field, text, "expected 1 to 64 of A-Z a-z 0-9 _ -") }
    }

    static func checkPolicy(_ field: RoomPolicy.Field, _ value: Int64) throws(FieldError) {
        guard !field.range.contains(value) else { return }
        if case .words(let words) = field.kind {
            throw FieldError("policy.\(field.name)", String(value), "expected one of \(words.joined(separator: ", "))")
        }
        let unit: Int64 = field.isDuration ? 1_000 : 1
        let (least, most) = (field.range.lowerBound / unit, field.range.upperBound / unit)
        throw FieldError(
            "policy.\(field.name)", self.decimal(value, per: unit), "expected \(least) to \(most)\(field.isDuration ? " seconds" : "")")
    }

    private static func decimal(_ value: Int64, per unit: Int64) -> String {
        value % unit == 0 ? String(value / unit) : String(Double(value) / Double(unit))
    }

    package static func isPlain(_ text: String) -> Bool { PlainText.isPlain(text) }
}

extension NewRoom {
    /// Throws for the first field that breaks a rule.
    package func check() throws(FieldError) {
        try RoomLimits.checkID(self.app, "app")
        guard self.app != "talk" else { throw FieldError("app", self.app, "talk is reserved for voice channels") }
        guard RoomLimits.slots.contains(self.slots) else {
            throw FieldError("slots", String(self.slots), "expected \(RoomLimits.slots.lowerBound) to \(RoomLimits.slots.upperBound)")
        }
        if let owner = self.owner { try RoomLimits.checkID(owner, "owner") }
        if let device = self.deviceUid { try RoomLimits.checkID(device, "deviceUid") }
        try RoomLimits.checkTitle(self.title)
        try RoomLimits.checkCustom(self.custom)
        for field in RoomPolicy.fields { try RoomLimits.checkPolicy(field, field.get(self.policy)) }
    }
}

extension RoomPatch {
    package func check() throws(FieldError) {
        if case .some(.some(let owner)) = self.owner { try RoomLimits.checkID(owner, "owner") }
        if case .some(.some(let device)) = self.deviceUid { try RoomLimits.checkID(device, "deviceUid") }
        if let title = self.title { try RoomLimits.checkTitle(title) }
        if let custom = self.custom { try RoomLimits.checkCustom(custom) }
        for (name, value) in self.policy.sorted(by: { $0.key < $1.key }) {
            guard let field = RoomPolicy.fields.first(where: { $0.name == name }) else {
                throw FieldError("policy.\(name)", String(value), "there is no such setting")
            }
            try RoomLimits.checkPolicy(field, value)
        }
    }
}
