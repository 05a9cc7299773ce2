internal import Crypto
package import Rooms
import Support

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Seals the addresses of relay tasks, which contain other servers' credentials, for the store. The key is in a file beside the store. A
/// value; printing it shows no key.
package struct URLVault: Sendable, CustomStringConvertible {
    private let key: SymmetricKey

    /// Prefix of sealed text; no URL begins with it.
    private static let mark = "sealed1:"
    package static let fileName = "relay.key"
    private static let advice = "restore it from a backup, or remove it and create the relay tasks again"

    package var description: String { "URLVault(key not shown)" }

    /// Reads the key, or creates one when there is none. Blocks. Throws ``KeyFileError``.
    package init(directory: String) throws {
        self.key = SymmetricKey(data: try SecretFile.key(Self.fileName, in: directory, advice: Self.advice))
    }

    package static func isSealed(_ text: String) -> Bool { text.hasPrefix(Self.mark) }

    /// Binds the sealed text to the task's direction and path: it cannot be opened for another direction or path.
    package func seal(_ url: String, _ direction: RelayTask.Direction, _ path: StreamPath) throws -> String {
        let box = try ChaChaPoly.seal(Array(url.utf8), using: self.key, authenticating: Self.context(direction, path))
        return Self.mark + box.combined.base64EncodedString()
    }

    /// Nil when it was sealed for another direction or path, with another key, or not at all.
    package func open(_ text: String, _ direction: RelayTask.Direction, _ path: StreamPath) -> String? {
        guard Self.isSealed(text), let data = Data(base64Encoded: String(text.dropFirst(Self.mark.count))) else { return nil }
        do {
            let box = try ChaChaPoly.SealedBox(combined: data)
            let url = try ChaChaPoly.open(box, using: self.key, authenticating: Self.context(direction, path))
            return String(decoding: url, as: UTF8.self)
        } catch {
            return nil
        }
    }

    private static func context(_ direction: RelayTask.Direction, _ path: StreamPath) -> [UInt8] {
        Array("relay \(direction.rawValue) \(path)".utf8)
    }
}
