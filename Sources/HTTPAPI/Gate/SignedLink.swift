import Access
import HTTPServer
import Hummingbird
import Support

/// The query of a signed link to a file, which takes a token's place. A value.
struct SignedLink {
    private let path: String
    private let expires: String
    private let signature: String

    private static let expires = Input(
        FileLinks.expires, .text(length: 1...20).example("1795255200"), "Of a signed link: when it expires, in seconds since 1970.")
    private static let signature = Input(
        FileLinks.signature, .text(length: 1...64).example("pB2qX0aQzR1u7o1cE9nq4D6yqk3yq1cQm0m7yQv3m2E"),
        "Of a signed link: takes the place of a token.")
    static let inputs: [any RequestInput] = [Self.expires, Self.signature]

    /// Nil unless the route serves files and the request shows a part of a link.
    init?(_ request: Request, _ route: APIRoute) {
        guard route.isDownload, let query = request.uri.query else { return nil }
        let parameters = QueryParameters(query)
        let (expires, signature) = (parameters.all(FileLinks.expires), parameters.all(FileLinks.signature))
        guard !expires.isEmpty || !signature.isEmpty else { return nil }
        self.path = request.uri.path
        self.expires = expires.first ?? ""
        self.signature = signature.first ?? ""
    }

    /// Throws 403 in words. `wrong` comes first where this server did not make the signature.
    func check(_ links: FileLinks, nowSeconds: Int64, wrong: () throws(APIError) -> Void) throws(APIError) {
        do throws(FileLinks.Refusal) {
            try links.check(self.path, expires: self.expires, signature: self.signature, nowSeconds: nowSeconds)
        } catch {
            switch error {
            case .wrong:
                try wrong()
                throw Self.forbidden(
                    "This link's signature is wrong; expected the link as the server made it, with its path, \(FileLinks.expires) and"
                        + " \(FileLinks.signature).", rule: "a right signature")
            case .expired(let seconds):
                throw Self.forbidden(
                    "This link expired at \(Instant.secondsText(seconds * 1_000)); ask for a new one.", rule: "a link that has not expired")
            }
        }
    }

    private static func forbidden(_ message: String, rule: String) -> APIError {
        var error = APIError(.forbidden, .forbidden, message)
        error.rule = rule
        return error
    }
}
