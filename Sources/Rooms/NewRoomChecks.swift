/// The limits of what callers may say about rooms.
enum RoomLimits {
    static let titleBytes = 200
    static let customBytes = 4_096
    static let customDepth = 32
    static let nickBytes = 100
    static let slots = 1...8
    static let members = 10_000
    static let likes = 1...100
    static let tokens = 1_000
    static let tokenNameBytes = 64

    static func checkTitle(_ title: String) throws(FieldError) {
        guard title.utf8.count <= self.titleBytes, self.isPlain(title) else {
            throw FieldError("title", title, "expected at most \(self.titleBytes) bytes without control characters")
        }
    }

    static func checkCustom(_ custom: String) throws(FieldError) {
        guard custom.utf8.count <= self.customBytes, JSONChecker.isObject(custom, maxDepth: self.customDepth) else {
            throw FieldError(
                "custom", custom, "expected a JSON object of at most \(self.customBytes) bytes, nested at most \(self.customDepth) deep")
        }
    }

    static func checkID(_ text: String, _ field: String) throws(FieldError) {
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

    /// No control characters, C1 included.
    static func isPlain(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }
}

extension NewRoom {
    /// Throws for the first field that breaks a rule.
    func check() throws(FieldError) {
        try RoomLimits.checkID(self.app, "app")
        guard self.app != "talk" else { throw FieldError("app", self.app, "talk is kept for voice channels") }
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
    func check() throws(FieldError) {
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
