import Outbound
internal import Rooms
import Support

/// A hook's answer, in either form.
struct HookAnswer {
    struct Problem: Error, Equatable, CustomStringConvertible {
        let description: String
    }

    private struct Body {
        var code: Int
        var id: String?
        var user: String?
        var message: String?
    }

    private var body: Body

    /// Throws when the answer has neither form.
    init(_ answer: OutboundAnswer) throws(Problem) {
        let read = Self.read(answer.body)
        if (400..<500).contains(answer.status) {
            self.body = Body(code: answer.status)
            // An answer of another form also refuses, without a message.
            if case .success(let body) = read { self.body.message = body.message }
            return
        }
        guard answer.status == 200 else { throw Problem(description: "it answered HTTP \(answer.status); expected 200") }
        switch read {
        case .success(let body): self.body = body
        case .failure(let problem):
            // SRS accepts a bare number as well.
            guard let text = String(validating: answer.body, as: UTF8.self), let code = Int(text.filter { !$0.isWhitespace }) else {
                throw Problem(
                    description: "its answer has \(answer.body.count) bytes and is neither {\"code\":…} nor a number: \(problem)")
            }
            self.body = Body(code: code)
        }
        if let user = self.body.user, !RoomID.isID(user) {
            throw Problem(description: "the user in its answer is not an id; expected 1 to 64 of A-Z a-z 0-9 _ -")
        }
        if let id = self.body.id, !(1...256).contains(id.utf8.count) {
            throw Problem(description: "the id in its answer has \(id.utf8.count) bytes; expected 1 to 256")
        }
        if let problem = self.body.id.flatMap(NameForm.problem) { throw Problem(description: "the id in its answer \(problem)") }
    }

    private static func read(_ bytes: [UInt8]) -> Result<Body, Problem> {
        do throws(JSONProblem) {
            let json = try JSONParser.parse(JSONParser.unmarked(bytes), deepest: JSONParser.deepestAnswer)
            return Self.body(json)
        } catch {
            return .failure(Problem(description: error.description))
        }
    }

    private static func body(_ json: JSONValue) -> Result<Body, Problem> {
        guard let code = Self.whole(json["code"]) else {
            return .failure(Problem(description: json["code"] == nil ? "it has no code" : "its code is not a whole number"))
        }
        var body = Body(code: code)
        let members: [(String, WritableKeyPath<Body, String?>)] = [("id", \.id), ("user", \.user), ("message", \.message)]
        for (name, member) in members {
            switch json[name] {
            case nil, .null?: break
            case .string(let text)?: body[keyPath: member] = text
            case let other?: return .failure(Problem(description: "its \(name) is \(other.kind), expected a string"))
            }
        }
        return .success(body)
    }

    /// Some hooks write whole numbers with a fraction: 0.0.
    private static func whole(_ value: JSONValue?) -> Int? {
        if case .integer(let number)? = value { Int(number) } else { value?.double.flatMap { Int(exactly: $0) } }
    }

    func verdict(on pass: AdmissionPass) -> Result<AdmissionPass, AdmissionRefusal> {
        guard self.body.code == 0 else {
            let said = Self.plain(self.body.message ?? "")
            return .failure(
                AdmissionRefusal(reason: .hookDenied, message: "The authorisation hook said no\(said.isEmpty ? "." : ": \(said)")"))
        }
        var pass = pass
        // The hook vouches for the client from here on.
        pass.isVerifiedByHook = pass.isVerifiedByHook || !pass.isVerified
        pass.isVerified = true
        if let id = self.body.id {
            pass.identity = "hook \(id)"
            pass.rank = 0
        }
        if let user = self.body.user {
            pass.user = user
            // As with a token's subject, the same user on another connection is the same publisher.
            if self.body.id == nil { pass.identity = "user \(user)" }
            pass.rank = 0
        }
        return .success(pass)
    }

    /// Cuts text to one line of at most 200 characters and 800 bytes, for the client and the log.
    private static func plain(_ text: String) -> String {
        let words = text.unicodeScalars.map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: " "
            default: String(scalar)
            }
        }.joined().split(separator: " ").joined(separator: " ")
        return String(words.prefix(200)).shortened(toBytes: 800)
    }
}
