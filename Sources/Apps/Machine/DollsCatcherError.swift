/// A refusal of the `/dollsCatcher/` API, with the code that its clients expect. The HTTP status stays 200. A value.
package struct DollsCatcherError: Error, Sendable, Equatable {
    /// What clients know.
    package enum Code: Int, Sendable, CaseIterable {
        case parameter = 400, account = 401
        /// The address, the page's origin, or the host name may not call.
        case forbidden = 403
        case noSuchCall = 404, tooManyRequests = 407
        /// The server cannot do it now.
        case server = 800
        case noSuchRoom = 804, accid = 901, nickname = 902, accidTaken = 906, tooManyTourists = 1101
    }

    package let code: Int
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code.rawValue
        self.message = message
    }

    /// A parameter is missing or invalid.
    package static func invalid(_ message: String) -> DollsCatcherError { DollsCatcherError(.parameter, message) }
    package static let unknownAccount = DollsCatcherError(.account, "This sid is unknown or too old.")
    package static let tooManyRequests = DollsCatcherError(.tooManyRequests, "There are too many requests from this address.")
    package static let noSuchRoom = DollsCatcherError(.noSuchRoom, "There is no such room.")
    package static let invalidAccid = DollsCatcherError(.accid, "accid: expected 1 to 20 letters, digits, or any of @ . _ -")
    package static let invalidNickname = DollsCatcherError(.nickname, "nickname: expected 1 to 10 letters, digits, or Chinese characters")
    package static let accidTaken = DollsCatcherError(.accidTaken, "This accid is taken.")
    package static func noMoreTourists(_ message: String) -> DollsCatcherError { DollsCatcherError(.tooManyTourists, message) }
}
