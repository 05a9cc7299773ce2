import Testing

@testable import Apps

/// Which requests are the cloud API's, and what is read of them before a key is looked up.
@Suite struct TencentRequestTests {
    private func claims(_ method: String, _ query: String? = nil, _ headers: [String: String] = [:]) -> Bool {
        TencentRequest.claims(method: method, query: query) { headers[$0] }
    }

    /// A request is claimed by its action, in a header or in the query, or as a form.
    @Test func whatIsClaimed() {
        let form = ["content-type": "application/x-www-form-urlencoded"]
        for method in ["GET", "POST", "PUT"] {
            #expect(self.claims(method, nil, ["x-tc-action": "ForbidLiveStream"]), "\(method)")
            #expect(!self.claims(method) && !self.claims(method, "a=1&Actions=2&b=Action="), "\(method)")
            #expect(!self.claims(method, nil, ["content-type": "application/json"]), "\(method)")
            #expect(self.claims(method, "a=1&Action=ForbidLiveStream") == (method != "PUT"), "\(method)")
            #expect(self.claims(method, nil, form) == (method == "POST"), "\(method)")
        }
        #expect(self.claims("POST", nil, ["content-type": "Application/X-WWW-Form-URLEncoded; charset=utf-8"]))
    }

    /// As in the guide's table of limits.
    @Test func aBodyHasAMebibyte() { #expect(TencentRequest.longestBody == 1_048_576) }

    /// A temporary credential's token is refused; an empty one is none.
    @Test(arguments: [TencentRequest.Method.get, .post]) func tokensAreRefused(_ method: TencentRequest.Method) throws {
        func read(_ token: String) throws(TencentError) -> TencentSignature {
            let form = "Action=ForbidLiveStream&SecretId=s&Signature=QUJD&Timestamp=1&Token=\(token)"
            return try TencentSignature(
                TencentRequest(
                    method: method, host: "h", query: method == .get ? form : "", headers: [], body: method == .post ? Array(form.utf8) : []
                ))
        }
        let error = #expect(throws: TencentError.self) { try read("t") }
        #expect(error?.code == .tokenWrong)
        #expect(try read("").keyID == "s")
    }
}
