#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What clients of the event feed may say.
enum ClientMessage {
    private struct Body: Decodable {
        let type: String
    }

    private static let longest = 256

    /// `{"type":"ping"}`. Everything else is ignored.
    static func isPing(_ text: String) -> Bool {
        guard text.utf8.count <= self.longest else { return false }
        do {
            return try JSONDecoder().decode(Body.self, from: Data(text.utf8)).type == "ping"
        } catch {
            return false
        }
    }
}
