import Support

/// A call to a whiteboard server in SealClass's protocol: `POST /room/create` or `/room/destroy` with a form `appId=&roomNr=`, answered by
/// `{"code":200,"data":"<the board's URL>"}`. A value.
package struct ExternalBoardCall: Sendable, Equatable {
    package enum Action: String, Sendable { case create, destroy }

    package let action: Action
    package let appID: String
    /// The board's name at that server.
    package let room: String

    package static let contentType = "application/x-www-form-urlencoded"

    package init(_ action: Action, appID: String, room: String) {
        self.action = action
        self.appID = appID
        self.room = room
    }

    /// Appended to the server's address.
    package var path: String { "/room/\(self.action.rawValue)" }

    package var body: String { "appId=\(PercentCoding.encode(self.appID))&roomNr=\(PercentCoding.encode(self.room))" }

    /// The code that clients get for a failure.
    private var failure: ClassroomCode { self.action == .create ? .createBoard : .deleteBoard }

    package func refusal(_ detail: String) -> GatheringRefusal { self.failure.refusal(detail) }

    /// The URL of the new board; nil after destroying one. Throws code 25 or 27 for any answer other than `{"code":200,…}`, and for a URL that no
    /// client should open.
    package func read(_ answer: String) throws(GatheringRefusal) -> String? {
        guard let value = try? JSONParser.parse(answer.utf8), case .integer(let code)? = value["code"] else {
            throw self.refusal("The whiteboard server's answer is not JSON with a code.")
        }
        guard code == 200 else { throw self.refusal("The whiteboard server answers with code \(code).") }
        guard self.action == .create else { return nil }
        guard case .string(let url)? = value["data"], Self.isAddress(url) else {
            throw self.refusal("The whiteboard server's answer has no address of a page.")
        }
        return url
    }

    /// Whether this is an http or https URL in ASCII without quotation marks, spaces and control characters, short enough for a whiteboard's id.
    private static func isAddress(_ url: String) -> Bool {
        let lower = url.lowercased()
        return lower.hasPrefix("https://") || lower.hasPrefix("http://")
            ? url.utf8.count <= ClassroomLimits.boardIDBytes && url.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x22 } : false
    }
}
