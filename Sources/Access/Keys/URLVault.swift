internal import Crypto
package import Rooms
import Support

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Seals the addresses of links, which contain other servers' credentials, for the store. The key is in a file beside the store; in a
/// cluster it comes from the cluster's key instead. A value; printing it shows no key.
package struct URLVault: Sendable, CustomStringConvertible {
    private let key: SymmetricKey
    /// Open only: from the cluster's previous key, and the file's, with which this server sealed before it joined.
    private let formerKeys: [SymmetricKey]
    /// Where the keys are, for messages.
    package let origin: String

    /// Prefix of sealed text; no URL begins with it.
    private static let mark = "sealed1:"
    package static let fileName = "links.key"
    private static let advice = "restore it from a backup, or remove it and create the links again"

    package var description: String { "URLVault(key not shown)" }

    /// Without a cluster it reads the key, or creates one when there is none. Blocks. Throws ``KeyFileError``.
    package init(_ cluster: ClusterKey? = nil, directory: String) throws {
        guard let cluster else {
            self.key = SymmetricKey(data: try SecretFile.key(Self.fileName, in: directory, advice: Self.advice))
            self.formerKeys = []
            self.origin = "the one in \(Self.fileName)"
            return
        }
        self.key = SymmetricKey(data: cluster.key(for: .vault))
        let own = try SecretFile.existingKey(Self.fileName, in: directory, advice: Self.advice)
        self.formerKeys = [cluster.previousKey(for: .vault), own].compactMap { $0.map { SymmetricKey(data: $0) } }
        self.origin = "those of cluster.key and cluster.previousKey, and than the one in this server's \(Self.fileName)"
    }

    package static func isSealed(_ text: String) -> Bool { text.hasPrefix(Self.mark) }

    /// Binds the sealed text to the link's direction and path: it cannot be opened for another direction or path.
    package func seal(_ url: String, _ direction: Link.Direction, _ path: StreamPath) throws -> String {
        let box = try ChaChaPoly.seal(Array(url.utf8), using: self.key, authenticating: Self.context(direction, path))
        return Self.mark + box.combined.base64EncodedString()
    }

    /// Nil when it was sealed for another direction or path, with another key, or not at all.
    package func open(_ text: String, _ direction: Link.Direction, _ path: StreamPath) -> String? {
        for key in [self.key] + self.formerKeys {
            if let url = Self.open(text, key, direction, path) { return url }
        }
        return nil
    }

    /// Whether the text should be sealed anew: it is not sealed, or with a key that only opens and will go some day.
    package func isOutdated(_ text: String, _ direction: Link.Direction, _ path: StreamPath) -> Bool {
        Self.open(text, self.key, direction, path) == nil
    }

    private static func open(_ text: String, _ key: SymmetricKey, _ direction: Link.Direction, _ path: StreamPath) -> String? {
        guard self.isSealed(text), let data = Data(base64Encoded: String(text.dropFirst(self.mark.count))) else { return nil }
        do {
            let box = try ChaChaPoly.SealedBox(combined: data)
            let url = try ChaChaPoly.open(box, using: key, authenticating: self.context(direction, path))
            return String(decoding: url, as: UTF8.self)
        } catch {
            return nil
        }
    }

    private static func context(_ direction: Link.Direction, _ path: StreamPath) -> [UInt8] {
        Array("link \(direction.rawValue) \(path)".utf8)
    }
}
