import LibC

/// The API token that a command sends, and its source. Never printed.
package struct AccessToken: Sendable {
    package enum Source: Equatable, Sendable {
        case file(String)
        case environment
        /// Made by the server's first start.
        case dataDirectory(String)
        /// No token was found in this file, if one was searched.
        case none(lookedIn: String?)
    }

    package let source: Source
    package let secret: String?

    package static let variable = "EARSHOT_TOKEN"
    package static let advice = """
        Give --token-file FILE or the server's --data DIR, or set \(variable); `earshot token create NAME --role ops` makes a token.
        """

    /// Finds a token in the named file, the environment or the data directory, in this order. The data directory holds a secret of this machine's
    /// server, so unless `--data` names it, its token is sent only to a server on this machine.
    package static func find(file: String?, dataDirectory: DataDirectoryOption, server: ServerAddress) throws(CommandFailure) -> AccessToken
    {
        if let file {
            guard let secret = try self.read(file) else { throw CommandFailure(.unauthorised, "there is no token file \(file)") }
            return AccessToken(source: .file(file), secret: secret)
        }
        if let secret = Console.variable(self.variable), !secret.isEmpty {
            return AccessToken(source: .environment, secret: try self.checked(secret, "\(self.variable)"))
        }
        guard dataDirectory.data != nil || server.isLoopback else { return AccessToken(source: .none(lookedIn: nil), secret: nil) }
        let path = "\(dataDirectory.path)/admin-token"
        guard let secret = try self.read(path) else { return AccessToken(source: .none(lookedIn: path), secret: nil) }
        return AccessToken(source: .dataDirectory(path), secret: secret)
    }

    /// The error text for a rejected or missing token.
    package func refusal(_ message: String) -> String {
        switch self.source {
        case .file(let path): "the token in \(path) was refused: \(message)"
        case .environment: "the token in \(Self.variable) was refused: \(message)"
        case .dataDirectory(let path): "the token in \(path) was refused: \(message)"
        case .none(let path?): "no token: \(path) does not exist"
        case .none(nil): "no token"
        }
    }

    /// Returns nil when the file does not exist.
    private static func read(_ path: String) throws(CommandFailure) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw CommandFailure(.unauthorised, "cannot read the token in \(path): \(Console.explain(errno))")
        }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 1_025)
        var count = 0
        while count < bytes.count {
            let more = bytes.withUnsafeMutableBytes { LibC.read(descriptor, $0.baseAddress.map { $0 + count }, $0.count - count) }
            if more < 0, errno == EINTR { continue }
            guard more >= 0 else { throw CommandFailure(.unauthorised, "cannot read the token in \(path): \(Console.explain(errno))") }
            if more == 0 { break }
            count += more
        }
        return try self.checked(String(decoding: bytes[..<count], as: UTF8.self), path)
    }

    /// Checks that the text fits into a header line: printable, one word. The error does not repeat it.
    private static func checked(_ text: String, _ source: String) throws(CommandFailure) -> String {
        let blank: (Character) -> Bool = { $0.isWhitespace }
        var word = text[...].drop(while: blank)
        while let last = word.last, blank(last) { word.removeLast() }
        guard (1...1_024).contains(word.utf8.count), word.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw CommandFailure(.unauthorised, "\(source) holds no token: expected at most 1,024 printable characters without spaces")
        }
        return String(word)
    }
}
