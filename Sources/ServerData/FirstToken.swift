import LibC
package import Logging
package import RoomRegistry
import Rooms

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The admin token that a new server makes for its operator.
package enum FirstToken {
    package static let fileName = "admin-token"

    /// Makes an admin token named "first" when no token is valid. Writes its secret to `admin-token`.
    ///
    /// The file is in the data directory; only its owner may read it. A blank file, left by a full disk or a mistake, also leads to a new token,
    /// since its secret is nowhere else. Returns the file's path if it exists now. Throws when the store or the file cannot be written.
    @discardableResult
    package static func ensure(_ registry: RoomRegistry, directory: String, log: Logger? = nil) async throws -> String? {
        let path = "\(directory)/\(Self.fileName)"
        let valid = try await registry.tokens().filter { $0.revokedAt == nil }
        if !valid.isEmpty {
            guard Self.isBlank(path) else { return FileManager.default.fileExists(atPath: path) ? path : nil }
            log?.warning(
                "The file of the first API token was empty: a new token is created; revoke the lost one",
                metadata: ["file": "\(path)"])
        }
        // Writes the file first: a server killed in between leaves a secret that opens nothing, and its next start makes another. The
        // reverse order would leave a valid token that nobody knows.
        let secret = RoomRegistry.randomTokenSecret()
        try Self.store(secret, at: path)
        do {
            _ = try await registry.createToken(name: Self.name(beside: valid.map(\.name)), role: .admin, secret: secret)
        } catch {
            unlink(path)
            throw error
        }
        return path
    }

    /// "first", or the first of "first-2", "first-3" … that is not the name of a valid token.
    private static func name(beside taken: [String]) -> String {
        var (name, number) = ("first", 1)
        while taken.contains(name) {
            number += 1
            name = "first-\(number)"
        }
        return name
    }

    /// Whether the file exists and holds nothing but whitespace and NUL.
    private static func isBlank(_ path: String) -> Bool {
        guard let bytes = FileManager.default.contents(atPath: path) else { return false }
        return bytes.allSatisfy { [0x20, 0x09, 0x0A, 0x0D, 0x00].contains($0) }
    }

    /// The file is whole or absent, and never readable by others.
    private static func store(_ secret: String, at path: String) throws(FirstTokenError) {
        guard let failure = WholeFile.replace(Array((secret + "\n").utf8), to: path, mode: 0o600) else { return }
        throw FirstTokenError(path: failure.path, code: failure.code)
    }
}

struct FirstTokenError: Error, CustomStringConvertible {
    let path: String
    let code: Int32
    var description: String { "cannot write the first API token to \(self.path): \(errorText(self.code))" }
}
