import Support

/// The fields of a call's body, read one by one. Null counts as absent; unknown fields are ignored. A value.
struct ClassroomFields {
    private let value: JSONValue

    init(_ members: [JSONValue.Member]) { self.value = .object(members) }

    init(_ body: String) throws(GatheringRefusal) {
        self.value = try Self.json(body)
        guard case .object = self.value else { throw ClassroomCode.body.refusal("The body is \(self.value.kind); expected a JSON object.") }
    }

    static func json(_ body: String) throws(GatheringRefusal) -> JSONValue {
        do {
            return try JSONParser.parse(body.utf8)
        } catch {
            throw ClassroomCode.body.refusal("The body is not JSON: \(error)")
        }
    }

    private static func wrong(_ name: String, _ rule: String) -> GatheringRefusal {
        ClassroomCode.parameter.refusal("\(name): \(rule)")
    }

    /// A text, at most as long as a whiteboard's URL; nil when absent or empty.
    func word(_ name: String) throws(GatheringRefusal) -> String? {
        switch self.value[name] {
        case nil, .null, .string(""): return nil
        case .string(let text)? where text.utf8.count <= ClassroomLimits.boardIDBytes: return text
        default: throw Self.wrong(name, "expected text, at most \(ClassroomLimits.boardIDBytes) bytes")
        }
    }

    func needed(_ name: String) throws(GatheringRefusal) -> String {
        guard let text = try self.word(name) else { throw Self.wrong(name, "is required") }
        return text
    }

    func room() throws(GatheringRefusal) -> String {
        let text = try self.needed("roomId")
        guard ClassroomCall.isRoomID(text) else { throw Self.wrong("roomId", "expected 1 to 40 letters, digits, _ or -") }
        return text
    }

    func name() throws(GatheringRefusal) -> String {
        let text = try self.needed("userName")
        if let problem = GatheringLimits.problem(ofName: text) { throw Self.wrong("userName", problem) }
        return text
    }

    func flag(_ name: String) throws(GatheringRefusal) -> Bool? {
        switch self.value[name] {
        case nil, .null: return nil
        case .bool(let flag)?: return flag
        default: throw Self.wrong(name, "expected true or false")
        }
    }

    func number(_ name: String, _ range: ClosedRange<Int>) throws(GatheringRefusal) -> Int64 {
        guard case .integer(let number)? = self.value[name], range.contains(Int(clamping: number)) else {
            throw Self.wrong(name, "expected a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func role() throws(GatheringRefusal) -> ClassroomRole {
        guard let role = ClassroomRole(number: try self.number("role", 1...4)) else { throw Self.wrong("role", "expected 1 to 4") }
        return role
    }

    /// One device; the camera when both are present, as in SealClass.
    func device() throws(GatheringRefusal) -> (ClassroomDevice, isOn: Bool) {
        if let isOn = try self.flag("cameraOn") { return (.camera, isOn) }
        if let isOn = try self.flag("microphoneOn") { return (.microphone, isOn) }
        throw Self.wrong("cameraOn", "expected it or microphoneOn")
    }

    /// Nil for type 4, which shows nothing.
    func display() throws(GatheringRefusal) -> ClassroomDisplay.Kind? {
        ClassroomDisplay.Kind(rawValue: try self.number("type", 0...4))
    }

    /// sealclass-web also sends the name with an upper-case B.
    func board() throws(GatheringRefusal) -> String {
        if let id = try self.word("whiteboardId") { return id }
        if let id = try self.word("whiteBoardId") { return id }
        throw Self.wrong("whiteboardId", "is required")
    }

    func users() throws(GatheringRefusal) -> [Classroom.RoleChange] {
        guard case .array(let entries)? = self.value["users"], (1...ClassroomLimits.users).contains(entries.count) else {
            throw Self.wrong("users", "expected an array of 1 to \(ClassroomLimits.users)")
        }
        var users: [Classroom.RoleChange] = []
        for case .object(let members) in entries {
            let fields = ClassroomFields(members)
            users.append(.init(userID: try fields.needed("userId"), role: try fields.role()))
        }
        guard users.count == entries.count else { throw Self.wrong("users", "expected objects with userId and role") }
        return users
    }
}

extension ClassroomCall {
    /// 1 to 40 letters, digits, `_` or `-`.
    package static func isRoomID(_ text: String) -> Bool {
        (1...40).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                    UInt8(ascii: "_"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }
}
