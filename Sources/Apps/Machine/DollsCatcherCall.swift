/// A call of `POST /dollsCatcher/…`, read and within its limits. A value.
package enum DollsCatcherCall: Sendable, Equatable {
    /// Asks for a guest's account: the same one again if `sid` is still valid.
    case tourist(sid: String?)
    case roomList(sid: String, limit: Int, offset: Int)
    /// `accid` in lower case. `mode`, this server's own addition: whether the machine's program drives its turns.
    case hostCreate(accid: String, nickname: String, password: String?, name: String, mode: Machine.Mode)
    /// At least one of the two is set.
    case hostManage(roomID: Int64, isOpen: Bool?, isPublic: Bool?)
    case hostQuery(roomID: Int64)

    package static let prefix = "/dollsCatcher/"

    /// All calls, by what follows the prefix.
    package enum Path: String, Sendable, CaseIterable {
        case tourist
        case roomList = "room/list", hostCreate = "host/create", hostManage = "host/manage", hostQuery = "host/query"
    }

    private static let listed = 1...100
    private static let longestOffset = 1_000_000_000

    /// Reads a call. `parameters`: of the form and the query, decoded; the first of each name counts. Nil for an unknown path.
    package static func read(path: String, parameters: [(name: String, value: String)]) throws(DollsCatcherError) -> DollsCatcherCall? {
        guard path.hasPrefix(self.prefix) else { return nil }
        let given = Parameters(parameters)
        switch Path(rawValue: String(path.dropFirst(self.prefix.count))) {
        case .tourist:
            // A sid that this server cannot have issued counts as absent.
            return .tourist(sid: given.text("sid").flatMap { GatheringLimits.isName($0) ? $0 : nil })
        case .roomList:
            guard let sid = given.text("sid") else { throw .invalid("sid: is required") }
            guard GatheringLimits.isName(sid) else { throw .unknownAccount }
            return .roomList(
                sid: sid, limit: Int(try given.number("limit", in: Int64(self.listed.lowerBound)...Int64(self.listed.upperBound)) ?? 10),
                offset: Int(try given.number("offset", in: 0...Int64(self.longestOffset)) ?? 0))
        case .hostCreate:
            let accid = try given.needed("accid")
            guard DollsCatcherAccount.isAccid(accid) else { throw .invalidAccid }
            let nickname = try given.needed("nickname")
            guard DollsCatcherAccount.isNickname(nickname) else { throw .invalidNickname }
            guard let name = given.text("name") else { throw .invalid("name: is required") }
            return .hostCreate(
                accid: accid.lowercased(), nickname: nickname, password: try given.text("password").map(self.line("password")),
                name: try self.line("name")(name), mode: try given.mode)
        case .hostManage:
            let id = try given.roomID
            let (isOpen, isPublic) = (try given.bool("roomStatus"), try given.bool("bePublic"))
            guard isOpen != nil || isPublic != nil else { throw .invalid("roomStatus or bePublic is required") }
            return .hostManage(roomID: id, isOpen: isOpen, isPublic: isPublic)
        case .hostQuery: return .hostQuery(roomID: try given.roomID)
        case nil: return nil
        }
    }

    private static func line(_ name: String) -> (String) throws(DollsCatcherError) -> String {
        { text throws(DollsCatcherError) in
            if let problem = GatheringLimits.problem(ofName: text) { throw .invalid("\(name): \(problem)") }
            return text
        }
    }

    private struct Parameters {
        private let values: [String: String]

        init(_ parameters: [(name: String, value: String)]) {
            self.values = Dictionary(parameters.map { ($0.name, $0.value) }) { first, _ in first }
        }

        /// Nil when it is absent or blank.
        func text(_ name: String) -> String? { self.values[name].flatMap { $0.allSatisfy(\.isWhitespace) ? nil : $0 } }

        /// May be blank: the caller decides what that means.
        func needed(_ name: String) throws(DollsCatcherError) -> String {
            guard let text = self.values[name] else { throw .invalid("\(name): is required") }
            return text
        }

        func number(_ name: String, in range: ClosedRange<Int64>) throws(DollsCatcherError) -> Int64? {
            guard let text = self.text(name) else { return nil }
            guard let number = Int64(text), range.contains(number) else {
                throw .invalid("\(name): expected a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
            return number
        }

        func bool(_ name: String) throws(DollsCatcherError) -> Bool? {
            guard let text = self.text(name) else { return nil }
            switch text.lowercased() {
            case "true", "1": return true
            case "false", "0": return false
            default: throw .invalid("\(name): expected true or false")
            }
        }

        var mode: Machine.Mode {
            get throws(DollsCatcherError) {
                guard let text = self.text("mode") else { return .server }
                guard let mode = Machine.Mode(rawValue: text) else { throw .invalid("mode: expected server or device") }
                return mode
            }
        }

        var roomID: Int64 {
            get throws(DollsCatcherError) {
                guard let id = try self.number("roomId", in: 1...Int64.max) else { throw .invalid("roomId: is required") }
                return id
            }
        }
    }
}
