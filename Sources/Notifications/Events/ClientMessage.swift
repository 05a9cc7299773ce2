import Support

/// Messages that clients of the event feed may send.
enum ClientMessage {
    private static let longest = 256

    /// `{"type":"ping"}`. Everything else is ignored.
    static func isPing(_ text: String) -> Bool {
        guard text.utf8.count <= self.longest else { return false }
        do throws(JSONProblem) {
            return try JSONParser.parse(text.utf8)["type"] == .string("ping")
        } catch {
            return false
        }
    }
}
