/// A refusal of the `/dollsCatcher/` API, with the code that its clients expect. The HTTP status stays 200. A value.
package struct DollsCatcherError: Error, Sendable, Equatable {
    package let code: Int
    package let message: String

    package init(code: Int, message: String) {
        self.code = code
        self.message = message
    }

    /// A parameter is missing or invalid.
    package static func invalid(_ message: String) -> DollsCatcherError { DollsCatcherError(code: 400, message: message) }
    package static let unknownAccount = DollsCatcherError(code: 401, message: "This sid is unknown or too old.")
    package static let tooManyRequests = DollsCatcherError(code: 407, message: "There are too many requests from this address.")
    package static let noSuchRoom = DollsCatcherError(code: 804, message: "There is no such room.")
    package static let invalidAccid = DollsCatcherError(
        code: 901, message: "accid: expected 1 to 20 letters, digits, or any of @ . _ -")
    package static let invalidNickname = DollsCatcherError(
        code: 902, message: "nickname: expected 1 to 10 letters, digits, or Chinese characters")
    package static let accidTaken = DollsCatcherError(code: 906, message: "This accid is taken.")
    package static func noMoreTourists(_ message: String) -> DollsCatcherError { DollsCatcherError(code: 1101, message: message) }
}
