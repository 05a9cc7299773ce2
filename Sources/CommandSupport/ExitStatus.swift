import ArgumentParser
package import NIOHTTP1
package import Support

/// The exit statuses of commands, for scripts; every command's help lists them.
package enum ExitStatus: Int32 {
    /// The server refused, or failed.
    case failed = 1
    /// No such room, stream, session, …
    case notFound = 3
    /// The action is not possible in the present state.
    case conflict = 4
    /// The token is missing, invalid, or lacks the right.
    case unauthorised = 5
    /// No server answers at the address.
    case unreachable = 6

    package static let explanation = """
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

/// A failed command's reason, in one or two lines with advice.
package struct CommandFailure: Error, CustomStringConvertible {
    package let status: ExitStatus
    package let message: String
    package var description: String { self.message }

    package init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }

    /// Runs the body; prints a failure to standard error and exits with its status.
    package static func reporting(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let failure as CommandFailure {
            Console.complain("earshot: \(failure.message)")
            throw ExitCode(failure.status.rawValue)
        } catch is Console.ReaderGone {
            // The reader, as in `… | head`, has seen enough.
            throw ExitCode.success
        }
    }
}

extension CommandFailure {
    /// Maps an unsuccessful API answer. Without a message in it, the text names the HTTP status and the allowed values.
    package static func refused(_ status: HTTPResponseStatus, body: JSONValue, server: ServerAddress, token: AccessToken)
        -> CommandFailure
    {
        let error = body["error"]
        var message = body["message"].string.map(DisplayText.escaped) ?? ""
        if message.isEmpty {
            let allowed = error["allowed"].list.compactMap(\.string).map(DisplayText.escaped)
            message = "the server answered \(status.code) \(status.reasonPhrase)"
            if !allowed.isEmpty { message += "; allowed states: \(allowed.joined(separator: ", "))" }
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
            let id = body["requestId"].string.map { "; see the server's log for request \(DisplayText.escaped($0))" } ?? ""
            return CommandFailure(.failed, "the server failed: \(message)\(id)")
        default:
            return CommandFailure(.failed, message)
        }
    }
}
