import ArgumentParser
import NIOHTTP1

/// How commands end, for scripts: the numbers that every command's help lists.
enum ExitStatus: Int32 {
    /// The server said no, or failed.
    case failed = 1
    /// No such room, stream, session, …
    case notFound = 3
    /// Not possible in the state that it is in.
    case conflict = 4
    /// No token, a wrong one, or one that may not do this.
    case unauthorised = 5
    /// No server answers there.
    case unreachable = 6

    static let explanation = """
        EXIT STATUS
          0   done
          1   failed: the server refused, or had an error
          3   not found
          4   not possible in the present state
          5   the token is missing, refused, or may not do this
          6   no server answers
          64  mistake in the command line
        """
}

/// Why a command did not do what it was asked to, in one or two lines that say what to do.
struct CommandFailure: Error {
    let status: ExitStatus
    let message: String

    init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }

    /// Runs the body; tells a failure on standard error and ends with its status.
    static func reporting(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let failure as CommandFailure {
            Console.complain("earshot: \(failure.message)")
            throw ExitCode(failure.status.rawValue)
        } catch is Console.ReaderGone {
            // `… | head` has seen enough.
            throw ExitCode.success
        }
    }
}

extension CommandFailure {
    /// An answer of the API other than success. `what` names the call when the answer has no message.
    static func refused(_ status: HTTPResponseStatus, body: JSONValue, server: ServerAddress, token: AccessToken) -> CommandFailure {
        let error = body["error"]
        var message = body["message"].string.map(DisplayText.escaped) ?? ""
        if message.isEmpty {
            let allowed = error["allowed"].list.compactMap(\.string).map(DisplayText.escaped)
            message = "the server answered \(status.code) \(status.reasonPhrase)"
            if !allowed.isEmpty { message += "; possible in \(allowed.joined(separator: ", "))" }
        }
        if message.hasSuffix(".") { message.removeLast() }
        switch status.code {
        case 401:
            return CommandFailure(.unauthorised, "\(token.refusal(message))\n\(AccessToken.advice)")
        case 403:
            return CommandFailure(.unauthorised, message)
        case 404:
            return CommandFailure(.notFound, message)
        case 409:
            return CommandFailure(.conflict, message)
        case 500...:
            let id = body["requestId"].string.map { "; the server's log has it under request \(DisplayText.escaped($0))" } ?? ""
            return CommandFailure(.failed, "the server failed: \(message)\(id)")
        default:
            return CommandFailure(.failed, message)
        }
    }
}
